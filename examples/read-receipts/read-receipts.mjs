// Shows who has read a message in a group of 10,000: one is sent, 6,000 read it in random order, some leave and some share
// no receipts, while its sender watches. At the end, what was told last, what a query counts, what its lists hold and
// what this script remembers itself are the same.
//
//   make run                                            in one terminal
//   node examples/read-receipts/read-receipts.mjs       in another
//
// --url and --data-dir say where the server is, if not where make run has it; --members and --readers make it smaller. The
// exit code is 0 if all agree.
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const ordinaryDataDir =
  process.getuid?.() === 0
    ? '/var/lib/tidemark'
    : join(process.env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'tidemark');
const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8080' },
    'data-dir': { type: 'string', default: process.env.TIDEMARK_DATA_DIR || ordinaryDataDir },
    members: { type: 'string', default: '10000' },
    readers: { type: 'string', default: '6000' },
  },
});
const members = Number(values.members);
const readers = Number(values.readers);
const few = Math.ceil(members / 1000); // leave, and as many share no receipts
const callers = 16; // how many call at the same time
const soon = 30_000; // how long the last event may take at the most; it takes some milliseconds

let secret;
try {
  secret = readFileSync(join(values['data-dir'], 'jwt-secret'), 'utf8').trim();
} catch (error) {
  console.error(`there is no secret to sign tokens with: ${error.message}\nBegin with make run.`);
  process.exit(1);
}
const encode = (part) => Buffer.from(JSON.stringify(part)).toString('base64url');
function tokenOf(user, role = 'user') {
  const now = Math.floor(Date.now() / 1000);
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub: user, role, iat: now, exp: now + 3600 })}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

async function request(token, query, variables, accept) {
  let response;
  try {
    response = await fetch(`${values.url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, Accept: accept },
      body: JSON.stringify({ query, variables }),
    });
  } catch (error) {
    throw new Error(`nobody answers: ${error.cause?.message ?? error.message}; is make run going at ${values.url}?`);
  }
  if (response.ok) return response;
  const text = await response.text();
  throw new Error(`the server says ${response.status}: ${messageIn(text)}; is make run going at ${values.url}?`);
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
  return new Error(extensions?.code === 'UNAUTHENTICATED' ? `${message}; is make run going at ${values.url}?` : message);
}

async function ask(token, query, variables) {
  const { data, errors } = await (await request(token, query, variables, 'application/json')).json();
  if (errors) throw refusal(errors[0]);
  return data;
}

// each calls f for every one of a list, some at a time.
async function each(list, f) {
  const left = [...list];
  const caller = async () => {
    while (left.length > 0) await f(left.pop());
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

function shuffle(list) {
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [list[i], list[j]] = [list[j], list[i]];
  }
  return list;
}

// What the sender is told live: the newest of what a stream of events brought.
let told;
let events = 0;
let changed = () => {};
async function follow(token, variables) {
  const query = `subscription ($in: ID!, $seq: Seq!) {
    receiptChanged(channelId: $in, seq: $seq) { readCount audienceCount allRead } }`;
  const response = await request(token, query, variables, 'text/event-stream');
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const parts = text.split('\n\n');
    text = parts.pop();
    for (const data of parts.flatMap((event) => event.match(/^data: (.+)$/m)?.[1] ?? [])) {
      const { data: event, errors } = JSON.parse(data);
      if (errors) throw refusal(errors[0]);
      told = event.receiptChanged;
      events++;
      changed();
    }
  }
}

async function until(what, holds) {
  const end = Date.now() + soon;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`not within ${soon / 1000} s: ${what}; told was ${JSON.stringify(told)}`);
    await new Promise((resolve) => {
      changed = resolve;
      setTimeout(resolve, 50);
    });
  }
}

// list returns all ids of one part of the audience, page by page.
async function list(part) {
  const ids = [];
  for (let after = null, more = true; more; ) {
    const { readReceipt } = await ask(
      sender,
      `query ($in: ID!, $seq: Seq!, $after: String) {
        readReceipt(channelId: $in, seq: $seq) { ${part}(first: 500, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } }`,
      { ...message, after },
    );
    ids.push(...readReceipt[part].nodes.map((user) => user.id));
    ({ hasNextPage: more, endCursor: after } = readReceipt[part].pageInfo);
  }
  return ids;
}

const same = (ids, set) => ids.length === set.size && ids.every((id) => set.has(id));
const seconds = (begin) => `${((Date.now() - begin) / 1000).toFixed(1)} s`;

// Ids are as sparse as those of any product.
const people = Array.from({ length: members - 1 }, (_, i) => String(700_000_000_000_000_000n + BigInt(i) * 7_919_001n));
const [sender, backend] = [tokenOf('1'), tokenOf('900000000000000000', 'service')];
let message;
try {
  let begin = Date.now();
  const { createChannel } = await ask(
    backend,
    'mutation { createChannel(input: { kind: GROUP, name: "Everybody", memberIds: ["1"] }) { id } }',
  );
  for (let i = 0; i < people.length; i += 1000) {
    await ask(backend, 'mutation ($to: ID!, $users: [ID!]!) { addMembers(channelId: $to, userIds: $users) { memberCount } }', {
      to: createChannel.id,
      users: people.slice(i, i + 1000),
    });
  }
  const { sendMessage } = await ask(
    sender,
    'mutation ($to: ID!) { sendMessage(channelId: $to, body: "Who reads this?") { message { seq } } }',
    { to: createChannel.id },
  );
  message = { in: createChannel.id, seq: sendMessage.message.seq };
  console.log(`${members} are in the group, and a message is sent (${seconds(begin)})`);

  follow(sender, message).catch((error) => {
    console.error(`the stream has ended: ${error.message}`);
    process.exit(1);
  });
  await until('the first event', () => told);
  console.log(`at first: read by ${told.readCount} of ${told.audienceCount}`);

  // What must come of it, with no thought of how it is kept.
  const reading = shuffle([...people]).slice(0, readers);
  const leaving = shuffle([...people]).slice(0, few);
  const hiding = shuffle([...people]).slice(0, few);
  const audience = new Set(people.filter((user) => !leaving.includes(user) && !hiding.includes(user)));
  const haveRead = new Set(reading.filter((user) => audience.has(user)));
  const haveNot = new Set([...audience].filter((user) => !haveRead.has(user)));

  begin = Date.now();
  const acts = shuffle([
    ...reading.map((user) => ({ user, query: 'mutation ($in: ID!, $seq: Seq!) { markRead(channelId: $in, upToSeq: $seq) { outcome } }', variables: message })),
    ...hiding.map((user) => ({ user, query: 'mutation { setReadReceiptSharing(share: false) { id } }' })),
  ]);
  await each(acts, ({ user, query, variables }) => ask(tokenOf(user), query, variables));
  await each(leaving, (user) =>
    ask(backend, 'mutation ($in: ID!, $user: ID!) { removeMember(channelId: $in, userId: $user) { memberCount } }', { in: message.in, user }),
  );
  console.log(`${readers} have read it, ${few} have left, ${few} share no receipts (${seconds(begin)})`);

  await until('the last event', () => told.readCount === haveRead.size && told.audienceCount === audience.size);
  console.log(`told live, in ${events} events: read by ${told.readCount} of ${told.audienceCount}`);
  begin = Date.now();
  const { readReceipt } = await ask(
    sender,
    'query ($in: ID!, $seq: Seq!) { readReceipt(channelId: $in, seq: $seq) { readCount audienceCount allRead } }',
    message,
  );
  console.log(`a query counts:  read by ${readReceipt.readCount} of ${readReceipt.audienceCount} (${Date.now() - begin} ms)`);
  if (readReceipt.readCount !== haveRead.size || readReceipt.audienceCount !== audience.size || readReceipt.allRead) {
    throw new Error(`it must be ${haveRead.size} of ${audience.size}`);
  }
  if (!same(await list('readers'), haveRead)) throw new Error('other people have read it than the list says');
  if (!same(await list('unreadMembers'), haveNot)) throw new Error('other people have not read it than the list says');
  console.log('The last event, the query, its lists and brute force agree.');
  process.exit(0);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
