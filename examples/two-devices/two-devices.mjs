// Shows that a badge is the same on all devices of a person, and right again after Redis and the server have been
// killed.
//
//   make run                                             in one terminal
//   node examples/two-devices/two-devices.mjs            in another; it asks for what is to be killed
//   node examples/two-devices/two-devices.mjs --kill     does that itself, and starts the server again
//
// --url and --data-dir say where the server is, if not where make run has it. The exit code is 0 if every device showed
// what it had to, each time.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const script = fileURLToPath(import.meta.url);
if (!globalThis.WebSocket) {
  // Node 20 has websockets, and keeps them behind a flag.
  const again = ['--experimental-websocket', '--no-warnings', script, ...process.argv.slice(2)];
  process.exit(spawnSync(process.execPath, again, { stdio: 'inherit' }).status ?? 1);
}
const { Device } = await import('./device.mjs');

const ordinaryDataDir =
  process.getuid?.() === 0
    ? '/var/lib/tidemark'
    : join(process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'tidemark');
const {
  values: { url, 'data-dir': dataDir, program, kill },
} = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    'data-dir': { type: 'string', default: process.env.TIDEMARK_DATA_DIR || ordinaryDataDir },
    program: { type: 'string', default: join(dirname(script), '..', '..', 'bin', 'tidemark') },
    kill: { type: 'boolean', default: false },
  },
});

const soon = 5_000; // how long a change may take at the most; it takes some milliseconds
const afterAFault = 30_000;
const untilKilled = kill ? afterAFault : 10 * 60_000; // people take their time

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function tokenOf(user, name) {
  const args = ['token', '--user', user, '--name', name, '--data-dir', dataDir];
  const made = spawnSync(program, args, { encoding: 'utf8' });
  if (made.status === 0) return made.stdout.trim();
  console.error(`${program} makes no token: ${made.error?.message ?? made.stderr}\nBegin with make run.`);
  return process.exit(1);
}

// engines are the process ids that a server with engines of its own has written down.
function engines() {
  const record = join(dataDir, 'engines.json');
  let written;
  try {
    written = JSON.parse(readFileSync(record, 'utf8'));
  } catch (error) {
    throw new Error(`${record} does not say what to kill; is it make run that listens on ${url}? ${error.message}`);
  }
  const { ownerPid: server, redis } = written;
  return { server, redis: redis?.pid === server ? undefined : redis?.pid }; // it may be a part of the server
}

let changed = () => {};
const device = (name, token) => new Device({ name, url, token, changed: () => changed() });
const adas = tokenOf('1', 'Ada');
const phone = device("Ada's phone", adas);
const laptop = device("Ada's laptop", adas);
const bens = device("Ben's phone", tokenOf('2', 'Ben'));
const devices = [phone, laptop, bens];

const started = Date.now();
const columns = (time, what, shown, took) => {
  const cells = [time.padStart(8), what.padEnd(44), ...shown.map((label) => label.padStart(7)), took.padStart(9)];
  console.log(cells.join('  ').trimEnd());
};

let channel;
const shown = () => devices.map((device) => (device.wanted ? (device.badgeOf(channel)?.unread.label ?? '-') : 'off'));

// wrong says what a device shows that it should not, where it does.
function wrong(device, unread, should) {
  if (!device.wanted) return '';
  const badge = device.badgeOf(channel);
  const asked = should.nodes.find((badge) => badge.channel.id === channel);
  if (badge?.unread.count !== unread) {
    return `${device.name} ${device.state} and shows ${badge?.unread.label}, not ${unread}`;
  }
  if (asked?.unread.count !== unread) {
    return `asked by ${device.name}, the server says ${asked?.unread.label}, not ${unread}`;
  }
  if (badge.version !== asked.version || device.total.unread.count !== should.total.unread.count) {
    return `${device.name} shows version ${badge.version} and a total of ${device.total.unread.count}`;
  }
  return '';
}

// step has something happen, and waits until each device shows what it must: the unread messages of Ada, and of Ben.
async function step(what, act, ada, ben, within = soon) {
  const at = Date.now();
  await act();
  const acted = Date.now();
  for (;;) {
    const another = new Promise((resolve) => (changed = resolve));
    const should = new Map([[adas, await phone.ask()], [bens.token, await bens.ask()]]);
    const faults = devices.map((device) => wrong(device, device === bens ? ben : ada, should.get(device.token)));
    const fault = faults.find(Boolean);
    if (!fault) break;
    if (Date.now() - acted > within) throw new Error(`${what}: after ${within} ms ${fault}`);
    await Promise.race([another, pause(100)]);
  }
  columns(`${((at - started) / 1000).toFixed(1)} s`, what, shown(), `${Date.now() - acted} ms`);
}

async function until(holds, within) {
  for (const end = Date.now() + within; !holds(); await pause(50)) {
    if (Date.now() > end) throw new Error(`nothing has happened for ${within / 1000} s`);
  }
}

let restarted;
function start() {
  const { host } = new URL(url);
  const args = ['dev', '--listen', host, '--data-dir', dataDir];
  const server = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  server.stderr.on('data', (more) => (log += more));
  server.ended = new Promise((resolve) => {
    server.on('error', resolve).on('exit', resolve);
  }).then((how) => how && console.error(`The server has ended: ${how}\n${log}`));
  restarted = server;
}

async function killRedis(pid) {
  if (kill) process.kill(pid, 'SIGKILL');
  else console.log(`\nNow kill Redis, in another terminal:  kill -9 ${pid}\n`);
  if (!kill) await until(() => engines().redis !== pid, untilKilled);
}

async function killServer() {
  const { server } = engines();
  if (kill) {
    process.kill(server, 'SIGKILL');
    await until(() => devices.every(({ socket }) => !socket), untilKilled);
    start();
  } else {
    console.log(`\nNow kill the server:  kill -9 ${server}\nand start it again:  make run\n`);
  }
  await until(() => engines().server !== server, untilKilled);
}

async function story() {
  await fetch(`${url}/healthz`).catch(() => {
    throw new Error(`nobody answers; is make run going at ${url}?`);
  });
  columns('', 'unread in a channel of Ada and Ben', ['phone', 'laptop', 'Ben'], 'all right');
  columns('', '', ['(Ada)', '(Ada)', ''], 'after');
  await step(
    'all three are there',
    async () => {
      for (const device of devices) device.connect();
      const { createChannel } = await phone.call(
        'mutation { createChannel(input: { kind: GROUP, name: "two devices", memberIds: [2] }) { id } }',
      );
      channel = createChannel.id;
    },
    0,
    0,
  );
  await step('Ben writes', () => bens.send(channel, 'Are you there?'), 1, 0);
  const twice = () => Promise.all([bens.send(channel, 'Ada?'), bens.send(channel, 'Hello?')]);
  await step('Ben writes twice more', twice, 3, 0);
  await step('Ada reads two on her phone', () => phone.read(channel, 2), 1, 0);
  await step('Ada reads the rest on her laptop', () => laptop.readAll(channel), 0, 0);
  await step('Ada writes on her laptop', () => laptop.send(channel, 'I am.'), 0, 1);
  await step('Ben reads all', () => bens.readAll(channel), 0, 0);
  await step('Ada marks one as unread on her phone', () => phone.unread(channel, 3), 1, 0);
  await step('the laptop is shut', () => laptop.disconnect(), 1, 0);
  await step('Ben writes', () => bens.send(channel, 'Lunch?'), 2, 0);
  await step('Ada reads all on her phone', () => phone.readAll(channel), 0, 0);
  await step('the laptop is opened', () => laptop.connect(), 0, 0);
  const { redis } = engines();
  if (redis) {
    await step('Redis is killed', () => killRedis(redis), 0, 0, afterAFault);
    await step('Ben writes', () => bens.send(channel, 'Redis is gone.'), 1, 0, afterAFault);
    await step('Ada reads all on her phone', () => phone.readAll(channel), 0, 0, afterAFault);
    await step('Redis is there again', () => until(() => engines().redis !== redis, afterAFault), 0, 0, afterAFault);
  } else {
    columns('', 'Redis stays: it is a part of the server, or not its own', [], '');
  }
  await step(
    'the server is killed; Ben writes to the next',
    async () => {
      await killServer();
      await bens.send(channel, 'And the server was.');
    },
    1,
    0,
    afterAFault,
  );
  await step('Ada reads all on her laptop', () => laptop.readAll(channel), 0, 0);
}

try {
  await story();
  console.log('\nEvery device was right, each time.');
} catch (error) {
  console.error(`\n${error.message}`);
  process.exitCode = 1;
} finally {
  for (const device of devices) device.disconnect();
  if (restarted) {
    restarted.kill('SIGTERM');
    await restarted.ended;
    console.log('The server that was started here is stopped again: make run starts another.');
  }
}
