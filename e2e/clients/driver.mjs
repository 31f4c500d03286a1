// What all clients here have in common: they are driven by lines of JSON on stdin, and tell on stdout what they see.
// They judge nothing: clients_test.go does.
//
//   node CLIENT.mjs URL
//
//   {"do": "follow"}                         begins to follow the badges
//   {"do": "call", "query", "variables"}     makes a query or a mutation
//   {"do": "token", "token"}                 gives the token that was asked for
//
//   {"wants": "stream" or "call"}            a token, for what is to be opened or called
//   {"event": "snapshot" or "change", ...}   an event came; with it, what is held now
//   {"answer": data, ...}                    a call was answered; likewise
//   {"closed": code}                         a websocket was closed
//   {"failed": message}                      what a client cannot come back from
//
// At the end of stdin it ends what is open, and then has nothing more to do.
import { createInterface } from 'node:readline';

const badgeFields = `{
  id version channel { id } highWaterSeq lastReadSeq readEpoch unreadUpperBound
  unread { count capped label } mentions { count capped label } muted
}`;
const totalFields = '{ unread { count capped label } unreadChannels mentions { count capped label } }';
const badgeChanged = `subscription {
  badgeChanged { snapshot badges ${badgeFields} removedChannelIds total ${totalFields} storeEpoch }
}`;

// Held is what an app keeps of badges, by the rules of the schema.
class Held {
  storeEpoch = null;
  total = null;
  badges = new Map();

  change({ snapshot, badges, removedChannelIds, total, storeEpoch }) {
    if (storeEpoch !== this.storeEpoch) this.badges.clear();
    const gone = snapshot
      ? [...this.badges.values()].filter(({ id }) => !badges.some((badge) => badge.id === id))
      : [...this.badges.values()].filter(({ channel }) => removedChannelIds.includes(channel.id));
    for (const { id } of gone) this.badges.delete(id);
    for (const badge of badges) this.badge(badge);
    this.total = total;
    this.storeEpoch = storeEpoch;
  }

  badge(badge) {
    const held = this.badges.get(badge.id);
    if (!held || badge.version > held.version) this.badges.set(badge.id, badge);
  }

  toJSON() {
    return { nodes: [...this.badges.values()], total: this.total, storeEpoch: this.storeEpoch };
  }
}

// retryWait is how long a client waits before it comes back. Apps leave it at its default, seconds that grow and are
// spread: here somebody waits for the test.
export const retryWait = () => new Promise((resolve) => setTimeout(resolve, 100 + 200 * Math.random()));

// drive opens a client and does with it what it is told. A client is
//   call(query, variables)          a promise of the result
//   follow(query, next, failed)     has next called with each result, whatever becomes of the connection
//   end()
export function drive(open) {
  const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  const waiting = [];
  const token = (what) =>
    new Promise((resolve) => {
      waiting.push(resolve);
      say({ wants: what });
    });
  const closed = (code) => say({ closed: code });
  let ended = false; // some clients complete what they are told to end
  const failed = (error) => {
    if (!ended) say({ failed: String(error?.reason || error?.message || JSON.stringify(error)) });
  };
  const client = open({ url: process.argv[2], socketURL: process.argv[2].replace(/^http/, 'ws'), token, closed });
  const held = new Held();

  const lines = createInterface({ input: process.stdin });
  const orders = {
    token: ({ token }) => waiting.shift()(token),
    follow: () =>
      client.follow(
        badgeChanged,
        ({ data, errors }) => {
          if (errors) return failed({ errors });
          held.change(data.badgeChanged);
          say({ event: data.badgeChanged.snapshot ? 'snapshot' : 'change', held });
        },
        failed,
      ),
    call: async ({ query, variables }) => {
      try {
        const { data, errors } = await client.call(query, variables);
        if (errors) return failed({ errors });
        for (const { badge } of Object.values(data)) if (badge) held.badge(badge);
        say({ answer: data, held });
      } catch (error) {
        failed(error);
      }
    },
  };
  lines.on('line', (line) => {
    const order = JSON.parse(line);
    orders[order.do](order);
  });
  lines.on('close', () => {
    ended = true;
    client.end();
  });
}
