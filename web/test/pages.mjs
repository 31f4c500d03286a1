// Drives a browser through the demo and the inspector, as people use them, and prints a line of JSON for each scenario:
// its name, what went wrong, if anything, and what it saw that somebody else has to compare.
//
//   node pages.mjs URL CHROMIUM TOKEN [DIRECTORY]
//
// TOKEN is one without the support role. With DIRECTORY, pictures of both pages are left there, in both colour schemes and
// at the width of a phone.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { openBrowser } from './browser.mjs';

const [url, executablePath, token, directory] = process.argv.slice(2);
const run = Date.now().toString(36); // what is written is told from what an earlier run wrote
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await openBrowser(executablePath);

function must(holds, what) {
  if (!holds) throw new Error(what);
}

/** Runs a scenario on a page of its own, on which nothing may be complained of. */
async function scenario(name, path, play, { colorScheme = 'light', width = 1280 } = {}) {
  const complaints = [];
  // The axe script is not the page's own, so the page's policy is set aside; that it holds is what `policy` looks at.
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, bypassCSP: name.startsWith('look') });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) complaints.push(`it leaves for ${request.url()}`);
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  let problem = '';
  let saw;
  try {
    await page.goto(url + path);
    saw = await play(page);
  } catch (error) {
    problem = String(error.stack ?? error).slice(0, 3000);
    if (directory) await page.screenshot({ path: `${directory}/problem-${name.replaceAll(' ', '-')}.png`, fullPage: true }).catch(() => {});
  }
  await context.close();
  console.log(JSON.stringify({ scenario: name, problem: [problem, ...complaints].filter(Boolean).join('\n'), saw }));
}

const device = (page, name) => page.getByRole('article', { name, exact: true });
const channel = (where, name, unread) => where.getByRole('button', { name: new RegExp(`^${name}.* ${unread} unread$`) });
const live = (page) => page.getByRole('article').filter({ hasText: 'Live.' }).nth(2).waitFor();

async function story(page, title) {
  await live(page);
  await page.getByRole('button', { name: title }).click();
  await page.getByText('It does not happen here.').waitFor();
  must((await page.locator('.steps .right').count()) > 5, 'a story has more steps that were right');
  must((await page.locator('.steps .wrong').count()) === 0, 'a step was wrong');
}

await scenario('story of the red dot', '/demo', async (page) => {
  await story(page, /keeps its red dot/);
  await channel(device(page, 'Ada’s laptop'), 'general', 0).waitFor();
});

await scenario('story of the lunch', '/demo', async (page) => {
  await story(page, /slept through lunch/);
  await page.getByText('It is sent a diff of 5 messages').waitFor();
  await channel(device(page, 'Ada’s laptop'), 'general', 1).waitFor();
});

await scenario('by hand', '/demo', async (page) => {
  await live(page);
  const phone = device(page, 'Ada’s phone');
  const laptop = device(page, 'Ada’s laptop');
  const ben = device(page, 'Ben’s phone');
  // One reads all of a channel on one device, and the other shows it.
  await phone.getByRole('button', { name: /^general/ }).click();
  await phone.getByRole('button', { name: 'Read all' }).click();
  await channel(laptop, 'general', 0).waitFor();
  // Another one writes, with a mention.
  await ben.getByRole('button', { name: /^general/ }).click();
  const write = async (where, body, mention) => {
    await where.getByLabel('Message', { exact: true }).fill(body);
    if (mention) await where.getByLabel('Mention somebody').selectOption({ label: mention });
    await where.getByLabel('Message', { exact: true }).press('Enter');
    await where.locator('.body', { hasText: body }).waitFor();
  };
  await write(ben, `${run} one`);
  await write(ben, `${run} two`, '@Ada');
  await write(ben, `${run} three`);
  await laptop.getByRole('button', { name: /general.*@ mentions you: 1 3 unread/ }).waitFor();
  // Read to a point.
  const two = phone.locator('.message', { hasText: `${run} two` });
  const seq = Number(await two.getAttribute('data-seq'));
  await two.getByRole('button', { name: `read to here, message ${seq}` }).click();
  await channel(laptop, 'general', 1).waitFor();
  // Ben sees who has read his newest: nobody yet, then Ada.
  await ben.getByText(/read by 0 of 3/).waitFor();
  await phone.getByRole('button', { name: 'Read all' }).click();
  await ben.getByText('read by 1 of 3: Ada').waitFor();
  // Mark unread.
  await phone.getByRole('button', { name: `unread from message ${seq - 1} on` }).click();
  await channel(laptop, 'general', 3).waitFor();
  // Delete.
  await ben.getByRole('button', { name: `delete message ${seq}` }).click();
  await channel(laptop, 'general', 2).waitFor();
  await two.waitFor({ state: 'detached' });
  // Mute: the total falls.
  const total = async () => Number(await laptop.locator('.bar .count').first().locator('span').first().innerText());
  const before = await total();
  await phone.getByRole('button', { name: 'Mute' }).click();
  await laptop.locator('button.muted', { hasText: 'general' }).waitFor();
  await page.waitForFunction(([element, n]) => Number(element.innerText) === n, [await laptop.locator('.bar .count span').first().elementHandle(), before - 2]);
  await phone.getByRole('button', { name: 'Mute' }).click();
  // The messages screen: it shows who wrote, and clears on both devices, while the badges stay.
  await phone.getByRole('button', { name: /^Messages [1-9]/ }).click();
  await phone.getByRole('region', { name: 'Messages' }).getByText('Ben').waitFor();
  await laptop.getByRole('button', { name: /^Messages 0/ }).waitFor();
  await channel(laptop, 'general', 2).waitFor();
  await phone.getByRole('button', { name: /^Messages/ }).click();
  // Off and on: a read that is made offline is told afterwards.
  await laptop.getByRole('switch').click();
  await laptop.getByText('Off. It shows what it knew.').waitFor();
  await write(ben, `${run} four`);
  await channel(laptop, 'general', 2).waitFor();
  await laptop.getByRole('switch').click();
  await laptop.getByText(/Caught up in \d+ ms\. general: diff, 1 message, 1 deleted\./).waitFor();
  await channel(laptop, 'general', 3).waitFor();
  // Another person's device, which has nothing yet.
  await page.getByRole('button', { name: 'Add a device' }).click();
  await device(page, 'Chao’s phone').getByText(/channels: resync, NEW_DEVICE/).waitFor();
  await device(page, 'Chao’s phone').getByRole('button', { name: 'Put Chao’s phone away' }).click();
  await device(page, 'Chao’s phone').waitFor({ state: 'detached' });
  // What each cursor is.
  const row = laptop.getByRole('row', { name: /^general/ });
  must(/^general \d+ \d+ \d+/.test((await row.innerText()).replace(/\s+/g, ' ')), `the cursors are ${await row.innerText()}`);
});

await scenario('by keyboard', '/demo', async (page) => {
  await live(page);
  const phone = device(page, 'Ada’s phone');
  await phone.getByRole('switch').focus();
  await page.keyboard.press('Space');
  await phone.getByText('Off. It shows what it knew.').waitFor();
  await page.keyboard.press('Enter');
  await phone.getByText('Live.').waitFor();
  for (let i = 0; i < 3; i++) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await phone.getByRole('list', { name: 'Messages, oldest first' }).waitFor();
});

const find = async (page, text, name) => {
  await page.getByLabel('A number, or how a name begins').fill(text);
  await page.getByRole('list', { name: 'People found' }).getByRole('button', { name }).click();
  await page.getByRole('heading', { name }).first().waitFor();
};

await scenario('inspector', '/inspect', async (page) => {
  await find(page, 'AD', /^Ada 1$/);
  await page.getByRole('button', { name: /^general/ }).click();
  const explanation = page.getByRole('region', { name: 'The badge of general' });
  await explanation.waitFor();
  for (const fact of ['Has read', 'Has received', 'Has opened messages']) await page.getByRole('heading', { name: fact }).waitFor();
  must((await page.getByText(/^demo-phone-/).count()) > 0, 'it shows no device');
  const summary = await explanation.locator('blockquote').innerText();
  const badges = await page.getByRole('list', { name: 'Badges' }).getByRole('button').count();
  return { summary, badges };
});

await scenario('inspector, live', '/inspect?user=2', async (page) => {
  const general = page.getByRole('list', { name: 'Badges' }).getByRole('button', { name: /^general/ });
  await general.waitFor();
  const before = await general.innerText();
  const other = await page.context().newPage();
  await other.goto(`${url}/demo`);
  await live(other);
  const ada = device(other, 'Ada’s phone');
  await ada.getByRole('button', { name: /^general/ }).click();
  await ada.getByLabel('Message', { exact: true }).fill('for Ben');
  await ada.getByLabel('Message', { exact: true }).press('Enter');
  await page.waitForFunction(([element, text]) => element.innerText !== text, [await general.elementHandle(), before], { timeout: 4000 });
});

await scenario('without the role', '/inspect', async (page) => {
  await page.getByText('Take another token').click();
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('A number, or how a name begins').fill('ada');
  await page.getByRole('alert').getByText('the state of others is for the support role').waitFor();
  must((await page.getByRole('list', { name: 'People found' }).count()) === 0, 'it shows people');
});

/** Looks at a page as axe does, for faults that keep people out, and for what does not fit its width. */
async function look(page, name) {
  await page.addScriptTag({ content: axe });
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  must(serious.length === 0, serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join('\n')}`).join('\n'));
  const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  must(wide <= screen, `it is ${wide} wide on a screen of ${screen}`);
  if (directory) await page.screenshot({ path: `${directory}/${name}.png`, fullPage: true });
}

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1280, 390]) {
    const name = `${colorScheme}-${width}`;
    await scenario(`look at the demo, ${name}`, '/demo', async (page) => {
      await live(page);
      await device(page, 'Ada’s laptop').getByRole('button', { name: /^general/ }).click();
      await story(page, /slept through lunch/);
      await look(page, `demo-${name}`);
    }, { colorScheme, width });
    await scenario(`look at the inspector, ${name}`, '/inspect', async (page) => {
      await find(page, '1', /^Ada 1$/);
      await page.getByRole('button', { name: /^general/ }).click();
      await page.getByRole('region', { name: 'The badge of general' }).waitFor();
      await look(page, `inspector-${name}`);
    }, { colorScheme, width });
  }
}

await browser.close();
