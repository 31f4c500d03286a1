import type { BadgeChangedSubscription, BadgeFragment } from './generated';

export type Badge = BadgeFragment;
export type BadgeChange = BadgeChangedSubscription['badgeChanged'];
export type Total = BadgeChange['total'];

/**
 * The badges of a person, as one device shows them. Events may come late, twice and in any order, and answers of
 * mutations among them: of two badges the one with the larger version is kept, whole. Nothing is ever added up here.
 */
export class Badges {
  /** Names the data that versions belong to. Undefined before the first event. */
  storeEpoch: string | undefined;
  /** Of all channels that are not muted, as the server says. */
  total: Total | undefined;
  private readonly byChannel = new Map<string, Badge>();

  /** Takes an event of badgeChanged in. Returns the channels that were removed by it. */
  take(change: BadgeChange): string[] {
    const removed = new Set(change.removedChannelIds);
    if (change.storeEpoch !== this.storeEpoch) {
      for (const channelId of this.byChannel.keys()) removed.add(channelId);
      this.byChannel.clear(); // versions are given out anew
      this.storeEpoch = change.storeEpoch;
    }
    if (change.snapshot) {
      const there = new Set(change.badges.map((badge) => badge.channel.id));
      for (const channelId of this.byChannel.keys()) if (!there.has(channelId)) removed.add(channelId);
    }
    for (const badge of change.badges) {
      this.keep(badge);
      removed.delete(badge.channel.id);
    }
    for (const channelId of removed) this.byChannel.delete(channelId);
    this.total = change.total;
    return [...removed];
  }

  /**
   * Takes a badge in that came with an answer. It may be older than the event that removed its channel, so it brings
   * none back: only events do. Returns whether it was news.
   */
  merge(badge: Badge): boolean {
    return this.byChannel.has(badge.channel.id) && this.keep(badge);
  }

  get(channelId: string): Badge | undefined {
    return this.byChannel.get(channelId);
  }

  /** All badges, muted ones too, in the order of the channels' ids. */
  list(): Badge[] {
    return [...this.byChannel.values()].sort((a, b) => compareIds(a.channel.id, b.channel.id));
  }

  private keep(badge: Badge): boolean {
    const held = this.byChannel.get(badge.channel.id);
    if (held && held.version >= badge.version) return false;
    this.byChannel.set(badge.channel.id, badge);
    return true;
  }
}

/** Ids are decimal numbers of up to 64 bits, which no number of JavaScript's holds. */
export function compareIds(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
