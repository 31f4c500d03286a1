import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The pages are served by the program, below its root: see web.go.
export default defineConfig({
  plugins: [react()],
  base: '/web/',
  build: {
    rolldownOptions: { input: { demo: 'demo.html', inspect: 'inspect.html' } },
    outDir: 'dist/built',
    assetsInlineLimit: 0, // the pages' policy allows no data: URL
    modulePreload: { polyfill: false },
    sourcemap: false,
  },
  test: { include: ['kit/test/*.test.ts'] },
});
