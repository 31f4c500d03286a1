import { chromium } from 'playwright-core';

// visit opens a browser and has somebody look at the playground with it, who gets the page, and
//
//   open()               loads it and waits until it is ready
//   execute(operation)   executes the operation of this name, which is that of the open tab
//   result(holding)      waits until the result pane holds a text, and returns all that is in it
//
// What the page asked other hosts for comes to be in saw.external, and what it had to complain of in saw.complaints.
export async function visit(url, executablePath, saw, look) {
  const origin = new URL(url).origin;
  saw.external = [];
  saw.complaints = [];

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
    const open = async () => {
      await page.goto(url);
      await page.getByRole('button', { name: /^Execute/ }).waitFor();
      await page.getByRole('button', { name: 'Re-fetch GraphQL schema' }).locator('svg:not(.graphiql-spin)').waitFor();
    };
    // GraphiQL learns which operation a tab holds a moment after it was opened, and sends that name along.
    const execute = async (operation) => {
      await page.waitForFunction(
        (name) =>
          document.querySelector('section[aria-label="Query Editor"] .CodeMirror').CodeMirror.operationName === name,
        operation,
      );
      await page.getByRole('button', { name: /^Execute/ }).click();
    };
    const result = async (holding) => {
      const pane = page.locator('.result-window .CodeMirror');
      await pane.filter({ hasText: holding }).waitFor();
      return pane.evaluate((element) => element.CodeMirror.getValue());
    };
    await look({ page, open, execute, result });
  } finally {
    await browser.close();
  }
}
