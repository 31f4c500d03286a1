// A device that keeps its owner's badges right: whatever happens to its connection, it comes back, and is told how
// things stand.
//
// An app takes a client such as graphql-ws for the socket. Here the protocol, graphql-transport-ws, is spoken by hand,
// so that nothing has to be installed; it is not much.

const badgeFields = '{ id version channel { id } highWaterSeq readEpoch unread { count label } }';
const badgeChanged = `subscription {
  badgeChanged { snapshot badges ${badgeFields} removedChannelIds total { unread { count } } storeEpoch }
}`;

export class Device {
  badges = new Map(); // by the badge's id
  total = null;
  storeEpoch = null;
  state = 'is not connected';

  // changed is called after everything that changes what the device shows.
  constructor({ name, url, token, changed }) {
    Object.assign(this, { name, url, token, changed });
  }

  // Connect, and stay so until disconnect.
  connect() {
    this.wanted = true;
    const socket = new WebSocket(`${this.url.replace(/^http/, 'ws')}/graphql`, 'graphql-transport-ws');
    this.socket = socket;
    const say = (message) => socket.send(JSON.stringify(message));
    socket.onopen = () => say({ type: 'connection_init', payload: { Authorization: `Bearer ${this.token}` } });
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      switch (message.type) {
        case 'connection_ack':
          say({ type: 'subscribe', id: '1', payload: { query: badgeChanged } });
          break;
        case 'ping':
          say({ type: 'pong' });
          break;
        case 'next':
          this.state = 'is connected';
          this.take(message.payload.data.badgeChanged);
          break;
        case 'error':
          lost(message.payload[0]);
          socket.close();
      }
    };
    // A server that cannot be reached is an error, and one that goes away is a close.
    const lost = ({ code, reason, message }) => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.state = `lost its connection: ${reason || message || code}`;
      if (this.wanted) this.retry = setTimeout(() => this.connect(), 100 + 400 * Math.random());
      this.changed();
    };
    socket.onclose = lost;
    socket.onerror = lost;
  }

  disconnect() {
    this.wanted = false;
    clearTimeout(this.retry);
    this.socket?.close();
  }

  // These two are all that there is to keeping badges right.
  take({ snapshot, badges, removedChannelIds, total, storeEpoch }) {
    if (storeEpoch !== this.storeEpoch) this.badges.clear();
    if (snapshot) {
      const there = new Set(badges.map(({ id }) => id));
      for (const id of this.badges.keys()) if (!there.has(id)) this.badges.delete(id);
    }
    for (const [id, { channel }] of this.badges) if (removedChannelIds.includes(channel.id)) this.badges.delete(id);
    for (const badge of badges) this.keep(badge);
    Object.assign(this, { total, storeEpoch });
    this.changed();
  }

  keep(badge) {
    const held = this.badges.get(badge.id);
    if (!held || badge.version > held.version) this.badges.set(badge.id, badge);
  }

  // call makes a query or a mutation. What cannot be answered now is tried again, for a time: with its clientMessageId,
  // a message is there once, however often it is sent.
  async call(query, variables, tries = 100) {
    let response;
    try {
      response = await fetch(`${this.url}/graphql`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ query, variables }),
        signal: AbortSignal.timeout(10_000),
      });
    } catch (error) {
      if (tries <= 1) throw error.cause ?? error;
    }
    if (response) {
      const { data, errors } = await response.json().catch(() => {
        throw new Error(`${this.name}: the answer is ${response.status} and no JSON; is make run going at ${this.url}?`);
      });
      if (response.ok && !errors) return data;
      const { message, extensions } = errors?.[0] ?? { message: `the server says ${response.status}` };
      if (tries <= 1 || extensions?.code !== 'UNAVAILABLE') {
        throw new Error(`${this.name}: ${message}${response.ok && extensions?.code !== 'UNAUTHENTICATED' ? '' : `; is make run going at ${this.url}?`}`);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    return this.call(query, variables, tries - 1);
  }

  badgeOf(channel) {
    return [...this.badges.values()].find((badge) => badge.channel.id === channel);
  }

  // ask asks for what the device should show, as if it had just been started.
  async ask() {
    const { badges } = await this.call(`{ badges { nodes ${badgeFields} total { unread { count } } storeEpoch } }`);
    return badges;
  }

  async send(channel, body) {
    const { sendMessage } = await this.call(
      `mutation ($channel: ID!, $body: String!, $id: ID!) {
        sendMessage(channelId: $channel, body: $body, clientMessageId: $id) { badge ${badgeFields} }
      }`,
      { channel, body, id: crypto.randomUUID() },
    );
    this.keep(sendMessage.badge); // the sender's device need not wait for the event
    this.changed();
  }

  async read(channel, seq) {
    const { markRead } = await this.call(
      `mutation ($channel: ID!, $seq: Seq!, $epoch: Int!) {
        markRead(channelId: $channel, upToSeq: $seq, readEpoch: $epoch) { badge ${badgeFields} }
      }`,
      { channel, seq, epoch: this.badgeOf(channel).readEpoch },
    );
    this.keep(markRead.badge);
    this.changed();
  }

  readAll(channel) {
    return this.read(channel, this.badgeOf(channel).highWaterSeq);
  }

  async unread(channel, seq) {
    const { markUnread } = await this.call(
      `mutation ($channel: ID!, $seq: Seq!, $epoch: Int!) {
        markUnread(channelId: $channel, fromSeq: $seq, readEpoch: $epoch) { badge ${badgeFields} }
      }`,
      { channel, seq, epoch: this.badgeOf(channel).readEpoch },
    );
    this.keep(markUnread.badge);
    this.changed();
  }
}
