import { describe, expect, it, vi } from 'vitest';
import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { Device, Refused, type BadgeChange, type ChannelSync, type Sink, type Transport } from '../src';
import { added, badge, change, diff, resync } from './make';

type Variables = Record<string, any>;

/** A connection whose other end is the test. */
class Line implements Transport {
  readonly asked: { name: string; variables: Variables }[] = [];
  readonly streams: { name: string; variables: Variables; sink: Sink<any>; ended: boolean }[] = [];
  private on: { connected(): void; lost(): void } | undefined;

  constructor(private readonly answers: Record<string, (variables: Variables) => unknown>) {}

  async ask<Data, V extends Variables>(document: TypedDocumentNode<Data, V>, variables: V): Promise<Data> {
    const name = nameOf(document);
    this.asked.push({ name, variables: structuredClone(variables) });
    await Promise.resolve();
    const answer = this.answers[name] ?? standard[name];
    if (!answer) throw new Refused(`nobody answers ${name}`, 'INTERNAL');
    return answer(variables) as Data;
  }

  follow<Data, V extends Variables>(document: TypedDocumentNode<Data, V>, variables: V, sink: Sink<Data>): () => void {
    const stream = { name: nameOf(document), variables, sink, ended: false };
    this.streams.push(stream);
    return () => (stream.ended = true);
  }

  watch(on: { connected(): void; lost(): void }): () => void {
    this.on = on;
    return () => (this.on = undefined);
  }

  connect = () => this.on?.connected();
  lose = () => this.on?.lost();
  tell = (badgeChanged: BadgeChange) => this.current('BadgeChanged')?.sink.next({ badgeChanged });
  current = (name: string) => this.streams.findLast((stream) => stream.name === name && !stream.ended);
  count = (name: string) => this.asked.filter((ask) => ask.name === name).length;
}

function nameOf(document: TypedDocumentNode<any, any>): string {
  const [definition] = document.definitions;
  return definition?.kind === 'OperationDefinition' ? (definition.name?.value ?? '') : '';
}

const standard: Record<string, (variables: Variables) => unknown> = {
  Channel: ({ id }) => ({ channel: { id, name: `channel ${id}`, kind: 'GROUP', members: { nodes: [] } } }),
  ConfirmDelivery: ({ cursors }) => ({ confirmDelivery: cursors.map((c: Variables) => ({ channelId: c.channelId, lastDeliveredSeq: c.seq, confirmedAt: null })) }),
  SyncDevice: () => ({ syncDevice: { channels: [], pageInfo: { hasNextPage: false, endCursor: null } } }),
};

const orders = (...channels: [id: string, action: string][]) => () => ({
  syncDevice: { channels: channels.map(([channelId, action]) => ({ channelId, highWaterSeq: 0, action })), pageInfo: { hasNextPage: false, endCursor: null } },
});

const syncs = (...answers: ChannelSync[]) => () => ({ syncChannel: answers.shift() ?? diff(1, 0, 1) });

describe('a device', () => {
  it('catches up with what it lacks, and confirms it', async () => {
    const device = new Device('phone');
    const line = new Line({ SyncDevice: orders(['101', 'RESYNC'], ['102', 'NONE']), SyncChannel: syncs(resync(3, 4)) });
    device.attach(line);
    expect(device.show().status).toBe('connecting');
    line.connect();
    line.tell(change([badge('101', 9, { highWaterSeq: 3 })], { snapshot: true }));
    await vi.waitFor(() => expect(device.show().status).toBe('live'));
    expect(device.show().catchUp).toMatchObject({ channels: [{ channelId: '101', kind: 'resync', reason: 'NEW_DEVICE', messages: 3 }], unchanged: 1 });
    await vi.waitFor(() => expect(device.show().confirmed.get('101')).toBe(3));
    expect(device.show().channels.get('101')?.name).toBe('channel 101');
  });

  it('says what it holds when it comes back, and follows the open channel from there', async () => {
    const device = new Device('phone');
    const first = new Line({ SyncDevice: orders(['101', 'RESYNC']), SyncChannel: syncs(resync(3, 4), diff(4, 3, 4)) });
    device.attach(first);
    first.connect();
    first.tell(change([badge('101', 9, { highWaterSeq: 3 })], { snapshot: true }));
    await vi.waitFor(() => expect(device.show().status).toBe('live'));
    await device.open('101');
    expect(first.current('ChannelEvents')?.variables).toEqual({ channelId: '101', after: 3, sinceVersion: 4, storeEpoch: 'one' });
    first.current('ChannelEvents')?.sink.next({ channelEvents: added(4, 5) });
    device.detach();
    expect(first.streams.every((stream) => stream.ended)).toBe(true);
    expect(device.show()).toMatchObject({ status: 'off', badges: [{ version: 9 }] }); // all that was held is shown

    const second = new Line({ SyncDevice: orders(['101', 'DIFF']), SyncChannel: syncs(diff(5, 6, 8, { hasMore: true }), diff(7, 7, 8, { deletedSeqs: [2] })) });
    device.attach(second);
    second.connect();
    await vi.waitFor(() => expect(device.show().status).toBe('live'));
    expect(second.asked[0]).toEqual({ name: 'SyncDevice', variables: { deviceId: 'phone', held: [{ channelId: '101', seq: 4, version: 5 }], storeEpoch: 'one', after: null } });
    expect(device.show().catchUp?.channels).toEqual([{ channelId: '101', kind: 'diff', messages: 3, deleted: 1 }]);
    expect(second.current('ChannelEvents')?.variables).toMatchObject({ after: 7, sinceVersion: 8 });

    second.lose(); // and it comes back by itself, without the app having a say in it
    expect(device.show().status).toBe('connecting');
    second.connect();
    await vi.waitFor(() => expect(device.show().status).toBe('live'));
    expect(second.streams.filter((stream) => stream.name === 'ChannelEvents')).toHaveLength(2);
  });

  it('fetches what a badge tells of, also where that is while it fetches', async () => {
    const device = new Device('phone');
    let tell = () => {};
    const answers = [
      () => resync(3, 4),
      () => {
        tell(); // of message 5, after this answer was made
        return diff(4, 4, 5);
      },
      () => diff(5, 5, 6),
    ];
    const line = new Line({ SyncDevice: orders(['101', 'RESYNC']), SyncChannel: () => ({ syncChannel: answers.shift()?.() }) });
    device.attach(line);
    line.connect();
    line.tell(change([badge('101', 4, { highWaterSeq: 3 })], { snapshot: true }));
    await vi.waitFor(() => expect(device.show().status).toBe('live'));
    tell = () => line.tell(change([badge('101', 6, { highWaterSeq: 5 })]));
    line.tell(change([badge('101', 5, { highWaterSeq: 4 })]));
    await vi.waitFor(() => expect(device.show().held.get('101')?.seq).toBe(5));
    line.tell(change([badge('101', 6, { highWaterSeq: 5 })]));
    await Promise.resolve();
    expect(line.count('SyncChannel')).toBe(3);
  });

  it.each(['UNAVAILABLE', 'INTERNAL', 'UNAUTHENTICATED'])('keeps a read that is made offline through %s, and tells it with the epoch of then', async (code) => {
    const device = new Device('laptop');
    const first = new Line({});
    device.attach(first);
    first.connect();
    first.tell(change([badge('101', 9, { readEpoch: 2 })], { snapshot: true }));
    await vi.waitFor(() => expect(device.show().status).toBe('live'));
    device.detach();
    await device.markRead('101', 7);
    expect(device.show().waitingReads).toBe(1);

    let away = true;
    const second = new Line({
      MarkManyRead: () => {
        if (away) throw new Refused('not now', code);
        return { markManyRead: [{ channelId: '101', outcome: 'VOID_EPOCH', badge: badge('101', 11, { readEpoch: 3 }) }] };
      },
    });
    device.attach(second);
    second.connect();
    await vi.waitFor(() => expect(second.count('MarkManyRead')).toBe(1));
    expect(device.show().waitingReads).toBe(1);
    away = false;
    await vi.waitFor(() => expect(device.show().status).toBe('live'), { timeout: 5000 });
    expect(second.asked.findLast(({ name }) => name === 'MarkManyRead')?.variables).toEqual({ cursors: [{ channelId: '101', upToSeq: 7, readEpoch: 2 }], deviceId: 'laptop' });
    expect(device.show()).toMatchObject({ waitingReads: 0, replayed: [{ channelId: '101', outcome: 'VOID_EPOCH' }], badges: [{ readEpoch: 3 }] });
  });

  it('forgets a channel that it is told to have left', async () => {
    const device = new Device('phone');
    const line = new Line({ SyncDevice: orders(['101', 'RESYNC']), SyncChannel: syncs(resync(3, 4)) });
    device.attach(line);
    line.connect();
    line.tell(change([badge('101', 9, { highWaterSeq: 3 })], { snapshot: true }));
    await vi.waitFor(() => expect(device.show().held.has('101')).toBe(true));
    line.tell(change([], { removedChannelIds: ['101'] }));
    expect(device.show()).toMatchObject({ badges: [], held: new Map(), channels: new Map() });
  });

  it('asks again for a stream that is refused', async () => {
    vi.useFakeTimers();
    const device = new Device('phone');
    const line = new Line({});
    device.attach(line);
    line.current('BadgeChanged')?.sink.error(new Refused('temporarily unavailable', 'UNAVAILABLE'));
    await vi.advanceTimersByTimeAsync(2000);
    expect(line.streams.filter(({ name }) => name === 'BadgeChanged')).toHaveLength(2);
    vi.useRealTimers();
  });
});
