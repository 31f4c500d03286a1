// Drives a browser through the playground and prints what it saw as JSON. It judges nothing: browser_test.go does.
//
//   node browser.mjs URL CHROMIUM [SCREENSHOT]
//
// With SCREENSHOT, the name of a PNG file, it leaves a picture there.
import { visit } from './visit.mjs';

const [url, executablePath, screenshot] = process.argv.slice(2);
const saw = { tabs: [] };

await visit(url, executablePath, saw, async ({ page, open, execute, result }) => {
  const editor = (label) =>
    page.locator(`section[aria-label="${label}"] .CodeMirror`).evaluateAll((all) => all.map((e) => e.CodeMirror.getValue()));
  const run = async () => {
    const answered = page.waitForResponse((response) => response.request().postData()?.includes('query Badges'));
    await execute('Badges');
    await answered;
    return result('"data"');
  };

  await open();
  saw.tabs = await page.getByRole('tab').allInnerTexts();

  // The dialog adds a style element of its own: the page's policy must let it.
  await page.getByRole('button', { name: 'Open settings dialog' }).click();
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  await page.getByRole('tab', { name: 'SyncChannel', exact: true }).click();
  await page.getByRole('tab', { name: 'Badges', exact: true }).click();
  saw.answer = await run();
  [saw.query] = await editor('Query Editor');
  [saw.variables, saw.headers] = await editor('Variables');
  if (screenshot) await page.screenshot({ path: screenshot });

  // What was typed is there after a reload, and so is the token.
  await open();
  saw.tabsAfterReload = await page.getByRole('tab').allInnerTexts();
  saw.answerAfterReload = await run();
});
process.stdout.write(JSON.stringify(saw));
