// Takes the pictures of docs/: the demo after a story, and the inspector on what came of it.
//
//   node pictures.mjs URL CHROMIUM DIRECTORY
import { openBrowser } from './browser.mjs';

const [url, executablePath, directory] = process.argv.slice(2);
const browser = await openBrowser(executablePath);
const page = await browser.newPage({ viewport: { width: 1480, height: 1200 }, colorScheme: 'light' });

await page.goto(`${url}/demo`);
await page.getByRole('article').filter({ hasText: 'Live.' }).nth(2).waitFor();
await page.getByRole('article', { name: 'Ada’s laptop' }).getByRole('button', { name: /^general/ }).click();
await page.getByRole('button', { name: /slept through lunch/ }).click();
await page.getByText('It does not happen here.').waitFor();
await page.screenshot({ path: `${directory}/demo.png`, fullPage: true });

await page.setViewportSize({ width: 1280, height: 800 });
await page.goto(`${url}/inspect`);
await page.getByLabel('A number, or how a name begins').fill('ada');
await page.getByRole('list', { name: 'People found' }).getByRole('button').first().click();
await page.getByRole('button', { name: /^general/ }).click();
await page.getByRole('region', { name: 'The badge of general' }).waitFor();
await page.screenshot({ path: `${directory}/inspector.png`, fullPage: true });
await browser.close();
