// Holds a server against the protocol graphql-transport-ws, as it says a server must behave:
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
//
//   node protocol.mjs URL TOKEN
//
// Each check is a conversation on a socket of its own. All are had at once: what takes longest, a client that does not
// answer a ping, takes 8 seconds. What failed is printed, and the exit code is 1 then.
import assert from 'node:assert/strict';
import { get } from 'node:http';
import WebSocket from 'ws';

const [url, token] = process.argv.slice(2);
const protocol = 'graphql-transport-ws';
const patience = 20_000;

// Conversation is a websocket from which what comes is taken one by one.
class Conversation {
  heard = [];
  waiting = [];

  constructor(subprotocols, options) {
    this.socket = new WebSocket(url.replace(/^http/, 'ws'), subprotocols, options);
    this.ready = new Promise((resolve) => {
      for (const event of ['open', 'unexpected-response', 'error']) this.socket.on(event, resolve);
    });
    this.socket.on('message', (data) => this.hear(JSON.parse(data)));
    this.socket.on('close', (code) => this.hear({ closed: code }));
    this.socket.on('pong', () => this.hear({ type: 'a frame of the kind pong' }));
    this.socket.on('unexpected-response', (_, { statusCode }) => this.hear({ refused: statusCode }));
    this.socket.on('error', (error) => this.hear({ failed: error.message }));
  }

  hear(what) {
    const next = this.waiting.shift();
    if (next) next(what);
    else this.heard.push(what);
  }

  say(...messages) {
    for (const message of messages) {
      this.socket.send(typeof message === 'object' && !Buffer.isBuffer(message) ? JSON.stringify(message) : message);
    }
  }

  async next() {
    if (this.heard.length) return this.heard.shift();
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`nothing comes for ${patience} ms`)), patience);
    });
    try {
      return await Promise.race([new Promise((resolve) => this.waiting.push(resolve)), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  // until takes what comes until something of a type does. It returns all of that.
  async until(type, id) {
    const all = [];
    for (;;) {
      const next = await this.next();
      all.push(next);
      if (next.type === type && (id === undefined || next.id === id)) return all;
      assert.ok(next.type, `${JSON.stringify(next)} comes before ${type}`);
    }
  }

  async closed(code) {
    let next;
    do next = await this.next();
    while (next.type === 'connection_ack' || next.type === 'next');
    assert.deepEqual(next, { closed: code });
  }

  async signIn() {
    this.say(init);
    assert.equal((await this.next()).type, 'connection_ack');
  }
}

const init = { type: 'connection_init', payload: { Authorization: `Bearer ${token}` } };
const subscribe = (id, query) => ({ type: 'subscribe', id, payload: { query } });
const complete = (id) => ({ type: 'complete', id });
const query = '{ me { id } }';
const badges = 'subscription { badgeChanged { snapshot total { unreadChannels } } }';
const invalid = '{ nobody }';
const change = 'mutation { createChannel(input: { kind: GROUP, memberIds: [] }) { id } }';
const types = (messages) => messages.map(({ type }) => type);

const checks = [];
const check = (name, converse, { subprotocols = protocol, ...options } = {}) =>
  checks.push([
    name,
    async () => {
      const c = new Conversation(subprotocols, options);
      try {
        await c.ready;
        await converse(c);
      } finally {
        c.socket.terminate();
      }
    },
  ]);
const closes = (name, code, ...messages) =>
  check(`${name} closes with ${code}`, async (c) => {
    c.say(...messages);
    await c.closed(code);
  });

closes('subscribe before connection_init', 4401, subscribe('1', query));
closes('complete before connection_init', 4400, complete('1'));
closes('a second connection_init', 4429, init, init);
closes('no connection_init', 4408);
closes('connection_init without a token', 4403, { type: 'connection_init' });
closes('connection_init with a token that is not good', 4403, {
  type: 'connection_init',
  payload: { Authorization: 'Bearer x.y.z' },
});
closes('what is not JSON', 4400, init, '}}{');
closes('an array', 4400, init, '[]');
closes('a binary message', 4400, init, Buffer.from('{"type":"ping"}'));
closes('a type that there is not', 4400, init, { type: 'start', id: '1', payload: { query } });
closes('a message without a type', 4400, init, {});
closes('subscribe without an id', 4400, init, { type: 'subscribe', payload: { query } });
closes('subscribe with an empty id', 4400, init, subscribe('', query));
closes('subscribe without a payload', 4400, init, { type: 'subscribe', id: '1' });
closes('subscribe without a query', 4400, init, { type: 'subscribe', id: '1', payload: {} });
closes('an id that is in use', 4409, init, subscribe('1', badges), subscribe('1', badges));
closes('a message of 2 MiB', 1009, init, subscribe('1', `${query} #${'a'.repeat(2 << 20)}`));
check('no subprotocol closes with 4406', (c) => c.closed(4406), { subprotocols: [] });
check('a page of another origin is refused', async (c) => assert.deepEqual(await c.next(), { refused: 403 }), {
  headers: { Origin: 'https://elsewhere.example' },
});

check('connection_init is answered with connection_ack', (c) => c.signIn());

check('ping is answered with pong and its payload', async (c) => {
  await c.signIn();
  c.say({ type: 'ping', payload: { a: [1] } }, { type: 'ping' });
  assert.deepEqual(await c.next(), { type: 'pong', payload: { a: [1] } });
  assert.deepEqual(await c.next(), { type: 'pong' });
});

check('ping is answered before connection_init', async (c) => {
  c.say({ type: 'ping' });
  assert.deepEqual(await c.next(), { type: 'pong' });
});

check('a frame of the kind ping is answered', async (c) => {
  c.socket.ping();
  assert.deepEqual(await c.next(), { type: 'a frame of the kind pong' });
});

check('a pong that nobody asked for is no fault', async (c) => {
  await c.signIn();
  c.say({ type: 'pong' }, { type: 'ping' });
  assert.deepEqual(await c.next(), { type: 'pong' });
});

check('a query is answered with next and complete', async (c) => {
  await c.signIn();
  c.say(subscribe('1', query));
  const [next, ...rest] = await c.until('complete', '1');
  assert.equal(next.type, 'next');
  assert.ok(next.payload.data.me.id, JSON.stringify(next));
  assert.deepEqual(rest, [complete('1')]);
});

check('a query that is not valid is answered with an array of errors, and not completed', async (c) => {
  await c.signIn();
  c.say(subscribe('1', invalid));
  const error = await c.next();
  assert.equal(error.type, 'error');
  assert.equal(error.id, '1');
  assert.ok(Array.isArray(error.payload) && error.payload[0].message, JSON.stringify(error));
  c.say(subscribe('2', query));
  assert.deepEqual(types(await c.until('complete')), ['next', 'complete']);
});

check('an id is free after error, and after complete of either side', async (c) => {
  await c.signIn();
  c.say(subscribe('1', invalid));
  await c.until('error', '1');
  c.say(subscribe('1', query));
  await c.until('complete', '1');
  c.say(subscribe('1', badges));
  await c.until('next', '1');
  c.say(complete('1'), subscribe('1', query));
  await c.until('complete', '1');
});

check('a subscription says how things stand, and then what changes', async (c) => {
  await c.signIn();
  c.say(subscribe('1', badges));
  const first = await c.next();
  assert.equal(first.type, 'next');
  assert.equal(first.payload.data.badgeChanged.snapshot, true);
  c.say(subscribe('2', change));
  const second = (await c.until('next', '1')).pop();
  assert.equal(second.payload.data.badgeChanged.snapshot, false);
});

check('nothing is said of an operation that the client completed', async (c) => {
  await c.signIn();
  c.say(subscribe('ended', badges), subscribe('goes on', badges));
  await c.until('next', 'goes on');
  c.say(complete('ended'), { type: 'ping' });
  await c.until('pong');
  c.say(subscribe('change', change));
  const heard = [...(await c.until('next', 'goes on'))];
  c.say(subscribe('last', query));
  heard.push(...(await c.until('complete', 'last')));
  assert.deepEqual(heard.filter(({ id }) => id === 'ended'), []);
});

check('complete of what does not run is no fault', async (c) => {
  await c.signIn();
  c.say(complete('1'), { type: 'ping' });
  assert.deepEqual(await c.next(), { type: 'pong' });
});

check('operations beyond a number are refused, one by one', async (c) => {
  await c.signIn();
  for (let id = 1; id <= 150; id++) c.say(subscribe(String(id), badges));
  const first = new Map();
  while (first.size < 150) {
    const { id, type, payload } = await c.next();
    if (type !== 'next' && type !== 'error') continue;
    if (!first.has(id)) first.set(id, type === 'next' ? 'runs' : payload[0].extensions.code);
  }
  const of = (what) => [...first.values()].filter((is) => is === what).length;
  assert.deepEqual([of('runs'), of('TOO_MANY_SUBSCRIPTIONS')], [100, 50]);
});

check('a client is pinged after 3 seconds, and closed with 4408 when it does not answer', async (c) => {
  await c.signIn();
  const acknowledged = Date.now();
  assert.deepEqual(await c.next(), { type: 'ping' });
  const pinged = Date.now();
  await c.closed(4408);
  const waited = [pinged - acknowledged, Date.now() - pinged];
  assert.ok(waited[0] > 2_000 && waited[1] > 4_000, `pinged and closed after ${waited} ms`);
});

check('a client that answers pings stays', async (c) => {
  await c.signIn();
  assert.deepEqual(await c.next(), { type: 'ping' });
  c.say({ type: 'pong' });
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  c.say(subscribe('1', query));
  await c.until('complete', '1');
});

// A client would end a connection without the subprotocol that it asked for, and not hear why. So this one is none.
checks.push([
  'a subprotocol that there is not closes with 4406',
  () =>
    new Promise((resolve, reject) => {
      const request = get(url, {
        headers: {
          Connection: 'Upgrade',
          Upgrade: 'websocket',
          'Sec-WebSocket-Version': '13',
          'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64'),
          'Sec-WebSocket-Protocol': 'graphql-ws',
        },
        timeout: patience,
      });
      request.on('timeout', () => request.destroy(new Error('there is no answer')));
      request.on('response', ({ statusCode }) => request.destroy(new Error(`it is refused with ${statusCode}`)));
      request.on('error', reject);
      request.on('upgrade', (_, socket, head) => {
        let frame = head;
        const hear = (more) => {
          frame = Buffer.concat([frame, more]);
          if (frame.length < 4) return;
          socket.destroy();
          if (frame[0] === 0x88 && frame.readUInt16BE(2) === 4406) resolve();
          else reject(new Error(`the first frame is ${frame.toString('hex')}`));
        };
        socket.on('error', reject);
        socket.on('end', () => reject(new Error('the connection ends without a word')));
        socket.on('data', hear);
        hear(Buffer.alloc(0));
      });
    }),
]);

const passed = await Promise.all(
  checks.map(async ([name, run]) => {
    try {
      await run();
      return true;
    } catch (error) {
      console.log(`FAILED ${name}: ${error.message.replaceAll(/\s+/g, ' ')}`);
      return false;
    }
  }),
);
console.log(`${passed.filter(Boolean).length} of ${checks.length}`);
process.exitCode = passed.every(Boolean) ? 0 : 1;
