import type { Badge, BadgeChange, ChannelEvent, ChannelSync, Message, Total } from '../src';

export const badge = (channelId: string, version: number, more: Partial<Badge> = {}): Badge => ({
  id: `1:${channelId}`,
  version,
  channel: { id: channelId },
  highWaterSeq: version,
  lastReadSeq: 0,
  readEpoch: 0,
  unreadUpperBound: version,
  unread: { count: version, label: String(version) },
  mentions: { count: 0, label: '0' },
  muted: false,
  ...more,
});

export const total = (count: number): Total => ({
  unread: { count, label: String(count) },
  unreadChannels: count > 0 ? 1 : 0,
  mentions: { count: 0, label: '0' },
});

export const change = (badges: Badge[], more: Partial<BadgeChange> = {}): BadgeChange => ({
  snapshot: false,
  badges,
  removedChannelIds: [],
  total: total(badges.reduce((sum, { unread }) => sum + unread.count, 0)),
  storeEpoch: 'one',
  ...more,
});

export const message = (seq: number, more: Partial<Message> = {}): Message => ({
  id: String(1000 + seq),
  channelId: '101',
  seq,
  sender: { id: '2', displayName: 'Ben' },
  body: `message ${seq}`,
  createdAt: '2026-12-01T10:00:00Z',
  deleted: false,
  mentionsViewer: false,
  ...more,
});

export const diff = (fromSeq: number, toSeq: number, version: number, more: Partial<Extract<ChannelSync, { __typename: 'ChannelDiff' }>> = {}): ChannelSync => ({
  __typename: 'ChannelDiff',
  messages: Array.from({ length: toSeq - fromSeq + 1 }, (_, i) => message(fromSeq + i)),
  deletedSeqs: [],
  fromSeq,
  toSeq,
  hasMore: false,
  version,
  storeEpoch: 'one',
  badge: badge('101', version, { highWaterSeq: toSeq }),
  ...more,
});

export const resync = (toSeq: number, version: number, more: Partial<Extract<ChannelSync, { __typename: 'ChannelResync' }>> = {}): ChannelSync => ({
  __typename: 'ChannelResync',
  reason: 'NEW_DEVICE',
  maxGap: 1000,
  messages: Array.from({ length: toSeq }, (_, i) => message(i + 1)),
  toSeq,
  version,
  storeEpoch: 'one',
  badge: badge('101', version, { highWaterSeq: toSeq }),
  ...more,
});

export const added = (seq: number, version: number, more: Partial<Message> = {}): ChannelEvent => ({ __typename: 'MessageAdded', message: message(seq, more), version });
export const deleted = (seq: number, version: number): ChannelEvent => ({ __typename: 'MessageDeleted', channelId: '101', seq, version });

/** Numbers that look random, and are the same in each run. */
export function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

export function shuffled<T>(list: T[], below: (n: number) => number): T[] {
  const copy = [...list];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = below(i + 1);
    [copy[i], copy[j]] = [copy[j] as T, copy[i] as T];
  }
  return copy;
}
