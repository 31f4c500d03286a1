// Drives a browser through the playground to a badge that changes, for a test that changes it. It prints lines of JSON:
// what the result pane shows first, what it shows after a change, and what the browser had to complain of.
//
//   node live.mjs URL CHROMIUM
import { visit } from './visit.mjs';

const [url, executablePath] = process.argv.slice(2);
const say = (what) => console.log(JSON.stringify(what));
const saw = {};

await visit(url, executablePath, saw, async ({ page, open, execute, result }) => {
  await open();
  await page.getByRole('tab', { name: 'BadgeChanged', exact: true }).click();
  await execute('BadgeChanged');
  say({ shows: await result('"snapshot": true') });
  say({ shows: await result('"snapshot": false') });
  await page.getByRole('button', { name: /^Stop/ }).click();
});
say(saw);
