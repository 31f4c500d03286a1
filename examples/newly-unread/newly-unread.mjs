// Shows what the messages icon counts: three people write to Ada, and it shows 3, live; she opens the messages screen, and
// it shows 0, while her badges stay; Redis is emptied, and nothing changes; and tidemark verify finds no drift.
//
//   make run                                          in one terminal
//   node examples/newly-unread/newly-unread.mjs       in another
//
// --url and --data-dir say where the server is, if not where make run has it. The exit code is 0 if each step showed what
// it had to.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const ordinaryDataDir =
  process.getuid?.() === 0
    ? '/var/lib/tidemark'
    : join(process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'tidemark');
const {
  values: { url, 'data-dir': dataDir, program },
} = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    'data-dir': { type: 'string', default: process.env.TIDEMARK_DATA_DIR || ordinaryDataDir },
    program: { type: 'string', default: join(here, '..', '..', 'bin', 'tidemark') },
  },
});
const soon = 10_000; // how long anything may take at the most; it takes some milliseconds

function tokenOf(user, name) {
  const made = spawnSync(program, ['token', '--user', user, '--name', name, '--data-dir', dataDir], { encoding: 'utf8' });
  if (made.status === 0) return made.stdout.trim();
  console.error(`${program} makes no token: ${made.error?.message ?? made.stderr}\nBegin with make run.`);
  return process.exit(1);
}

async function request(token, query, variables, accept) {
  let response;
  try {
    response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, Accept: accept },
      body: JSON.stringify({ query, variables }),
    });
  } catch (error) {
    throw new Error(`nobody answers: ${error.cause?.message ?? error.message}; is make run going at ${url}?`);
  }
  if (response.ok) return response;
  const text = await response.text();
  throw new Error(`the server says ${response.status}: ${messageIn(text)}; is make run going at ${url}?`);
}

// messageIn is the message of the error that a server answered with, and the answer itself where it is none of GraphQL's.
function messageIn(text) {
  try {
    return JSON.parse(text).errors[0].message;
  } catch {
    return text.slice(0, 200).trim();
  }
}

// refusal tells a token of another server's from all else that a server may refuse.
function refusal({ message, extensions }) {
  return new Error(extensions?.code === 'UNAUTHENTICATED' ? `${message}; is make run going at ${url}?` : message);
}

async function ask(token, query, variables) {
  const { data, errors } = await (await request(token, query, variables, 'application/json')).json();
  if (errors) throw refusal(errors[0]);
  return data;
}

// The icon, as it is shown live: the newest of what a stream of events told.
let shown;
let changed = () => {};
async function follow(token) {
  const query = 'subscription { newlyUnreadChanged { count label senders { user { displayName } } asOf } }';
  const response = await request(token, query, {}, 'text/event-stream');
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const events = text.split('\n\n');
    text = events.pop();
    for (const data of events.flatMap((event) => event.match(/^data: (.+)$/m)?.[1] ?? [])) {
      const { data: event, errors } = JSON.parse(data);
      if (errors) throw refusal(errors[0]);
      shown = event.newlyUnreadChanged;
      changed();
    }
  }
}

async function until(what, holds) {
  const end = Date.now() + soon;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`not within ${soon / 1000} s: ${what}; the icon shows ${JSON.stringify(shown)}`);
    await new Promise((resolve) => {
      changed = resolve;
      setTimeout(resolve, 50);
    });
  }
  console.log(`${what.padEnd(52)} icon ${shown.label.padStart(3)}`);
}

// engines is where Postgres and Redis are, as the server has written it down.
function engines() {
  const { postgres, redis } = JSON.parse(readFileSync(join(dataDir, 'engines.json'), 'utf8'));
  return { database: postgres.url, redis: redis.url };
}

// emptyRedis sends FLUSHALL to Redis.
async function emptyRedis() {
  const { hostname, port } = new URL(engines().redis);
  await new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write('FLUSHALL\r\n'));
    socket.once('data', (answer) => {
      socket.destroy();
      if (String(answer).startsWith('+OK')) resolve();
      else reject(new Error(`Redis says ${answer}`));
    });
    socket.once('error', reject);
  });
}

// verify has everything compared with the truth: badges with the messages, and copies in Redis with Postgres.
function verify() {
  const { database, redis } = engines();
  const { status, stdout, stderr } = spawnSync(program, ['verify', '--quiet', '--database-url', database, '--redis-url', redis], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`tidemark verify: ${stdout}${stderr}`);
  console.log(`tidemark verify: ${stdout.trim()}`);
}

const ada = tokenOf('1', 'Ada');
const writers = [
  ['2', 'Ben'],
  ['3', 'Chao'],
  ['4', 'Dina'],
].map(([user, name]) => ({ user, name, token: tokenOf(user, name) }));
const badges = async () => (await ask(ada, '{ badges { nodes { id version unread { label } } total { unread { label } } } }')).badges;

follow(ada).catch((error) => {
  console.error(`the stream has ended: ${error.message}`);
  process.exit(1);
});
try {
  await until('at first', () => shown);
  await ask(ada, 'mutation { acknowledge { count } }');
  await until('Ada has opened the messages screen', () => shown.count === 0);

  for (const [i, { user, name, token }] of writers.entries()) {
    const channel = await ask(token, 'mutation ($ada: [ID!]!) { createChannel(input: { kind: DIRECT, memberIds: $ada }) { id } }', {
      ada: ['1'],
    });
    for (const body of i === 0 ? ['hello', 'are you there?'] : ['hello']) {
      await ask(token, 'mutation ($to: ID!, $body: String!) { sendMessage(channelId: $to, body: $body) { message { id } } }', {
        to: channel.createChannel.id,
        body,
      });
    }
    await until(`${name} writes${i === 0 ? ', twice' : ''} (person ${user})`, () => shown.count === i + 1 && shown.senders[0].user.displayName === name);
  }

  const before = JSON.stringify(await badges());
  await emptyRedis();
  const { newlyUnread } = await ask(ada, '{ newlyUnread { count label } }');
  if (newlyUnread.count !== 3) throw new Error(`Redis was emptied, and the icon shows ${newlyUnread.label}`);
  await until('Redis is emptied', () => shown.count === 3);

  await ask(ada, 'mutation ($asOf: Position) { acknowledge(asOf: $asOf) { count } }', { asOf: shown.asOf });
  await until('Ada opens the messages screen', () => shown.count === 0);
  if (JSON.stringify(await badges()) !== before) throw new Error('a badge has changed');
  verify();
  console.log('No badge has changed. Each step showed what it had to.');
  process.exit(0);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
