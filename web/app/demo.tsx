import { createRoot } from 'react-dom/client';
import { Demo } from './demo/Demo';
import './style.css';

createRoot(document.getElementById('page') as HTMLElement).render(<Demo />);
