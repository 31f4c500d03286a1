import { createRoot } from 'react-dom/client';
import { Inspector } from './inspect/Inspector';
import './style.css';

createRoot(document.getElementById('page') as HTMLElement).render(<Inspector />);
