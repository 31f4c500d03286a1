// Drives a browser through the playground and prints what it saw as JSON. It judges nothing: browser_test.go does.
//
//   node browser.mjs URL CHROMIUM [SCREENSHOT]
//
// With SCREENSHOT, the name of a PNG file, it leaves a picture there.
import { chromium } from 'playwright-core';

const [url, executablePath, screenshot] = process.argv.slice(2);
const origin = new URL(url).origin;
const saw = { external: [], complaints: [], tabs: [] };

// The profile is new, and gone afterwards. A browser that hangs is given up on from in here, where it can be closed.
const browser = await chromium.launchPersistentContext('', {
  executablePath,
  headless: true,
  viewport: { width: 1440, height: 900 },
  timeout: 60_000,
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
  ],
});
try {
  browser.setDefaultTimeout(30_000);
  browser.on('request', (request) => {
    const { protocol, origin: at } = new URL(request.url());
    if (at !== origin && protocol !== 'data:' && protocol !== 'blob:') saw.external.push(request.url());
  });
  browser.on('requestfailed', (request) => saw.complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  const page = browser.pages()[0] ?? (await browser.newPage());
  page.on('pageerror', (error) => saw.complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') saw.complaints.push(message.text());
  });

  const editor = (label) =>
    page.locator(`section[aria-label="${label}"] .CodeMirror`).evaluateAll((all) => all.map((e) => e.CodeMirror.getValue()));
  const open = async () => {
    await page.goto(url);
    await page.getByRole('button', { name: /^Execute/ }).waitFor();
    await page.getByRole('button', { name: 'Re-fetch GraphQL schema' }).locator('svg:not(.graphiql-spin)').waitFor();
  };
  const run = async () => {
    // GraphiQL learns which operation a tab holds a moment after it was opened, and sends that name along.
    await page.waitForFunction(
      () => document.querySelector('section[aria-label="Query Editor"] .CodeMirror').CodeMirror.operationName === 'Badges',
    );
    const answered = page.waitForResponse((response) => response.request().postData()?.includes('query Badges'));
    await page.getByRole('button', { name: /^Execute/ }).click();
    await answered;
    await page.locator('.result-window .CodeMirror', { hasText: '"data"' }).waitFor();
    const [answer] = await page.locator('.result-window .CodeMirror').evaluateAll((all) => all.map((e) => e.CodeMirror.getValue()));
    return answer;
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
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(saw));
