import { describe, expect, it } from 'vitest';
import { Badges, compareIds } from '../src';
import { badge, change, random, shuffled, total } from './make';

describe('badges', () => {
  it('end with the newest of each channel, in whatever order and how often events come', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const below = random(seed);
      const badges = new Badges();
      badges.take(change([badge('101', 1), badge('102', 1)], { snapshot: true }));
      const events = ['101', '102'].flatMap((channelId) => [2, 3, 4, 5, 6].map((version) => badge(channelId, version)));
      for (const event of shuffled([...events, ...events], below)) {
        if (below(2) === 0) badges.merge(event);
        else badges.take(change([event]));
      }
      expect(badges.list().map(({ version }) => version)).toEqual([6, 6]);
    }
  });

  it('are kept whole: a smaller cursor with a larger version is the truth after a mark unread', () => {
    const badges = new Badges();
    badges.take(change([badge('101', 7, { lastReadSeq: 9 })], { snapshot: true }));
    expect(badges.merge(badge('101', 8, { lastReadSeq: 3, readEpoch: 1 }))).toBe(true);
    expect(badges.merge(badge('101', 7, { lastReadSeq: 9 }))).toBe(false);
    expect(badges.get('101')).toMatchObject({ lastReadSeq: 3, readEpoch: 1 });
  });

  it('take the total as it is told, and add nothing up', () => {
    const badges = new Badges();
    badges.take(change([badge('101', 3)], { snapshot: true, total: total(41) }));
    expect(badges.total?.unread.count).toBe(41);
    badges.merge(badge('101', 9));
    expect(badges.total?.unread.count).toBe(41);
  });

  it('forget what a snapshot does not have, and what was removed', () => {
    const badges = new Badges();
    badges.take(change([badge('101', 3), badge('102', 3), badge('103', 3)], { snapshot: true }));
    expect(badges.take(change([badge('101', 3), badge('103', 3)], { snapshot: true }))).toEqual(['102']);
    expect(badges.take(change([], { removedChannelIds: ['101'] }))).toEqual(['101']);
    expect(badges.list().map(({ channel }) => channel.id)).toEqual(['103']);
  });

  it('are not brought back by a late answer, but by an event', () => {
    const badges = new Badges();
    badges.take(change([badge('101', 3)], { snapshot: true }));
    badges.take(change([], { removedChannelIds: ['101'] }));
    expect(badges.merge(badge('101', 2))).toBe(false);
    expect(badges.list()).toEqual([]);
    badges.take(change([badge('101', 6)]));
    expect(badges.get('101')?.version).toBe(6);
  });

  it('begin anew with another store, whose versions are smaller', () => {
    const badges = new Badges();
    badges.take(change([badge('101', 900), badge('102', 900)], { snapshot: true }));
    expect(badges.take(change([badge('101', 5)], { snapshot: true, storeEpoch: 'two' }))).toEqual(['102']);
    expect(badges.list().map(({ version }) => version)).toEqual([5]);
  });
});

it('ids compare as the numbers that they are, of any size', () => {
  expect(['9223372036854775807', '10', '9', '9223372036854775806'].sort(compareIds)).toEqual(['9', '10', '9223372036854775806', '9223372036854775807']);
});
