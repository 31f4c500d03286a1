import { chromium } from 'playwright-core';

/** Opens a browser that leaves nothing behind, and cannot leave this machine. */
export const openBrowser = (executablePath) =>
  chromium.launch({
    executablePath,
    headless: true,
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
