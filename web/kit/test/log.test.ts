import { describe, expect, it } from 'vitest';
import { ChannelLog } from '../src';
import { added, deleted, diff, message, random, resync } from './make';

const standing = (log: ChannelLog) => log.messages().filter((m) => !m.deleted).map((m) => m.seq);

describe('a log', () => {
  it('takes pages of a diff, and what follows', () => {
    const log = new ChannelLog();
    log.apply(resync(3, 4));
    log.apply(diff(4, 5, 8, { hasMore: true, deletedSeqs: [2] }));
    log.apply(diff(6, 7, 8));
    expect(log.take(added(8, 9))).toBe('news');
    expect(log.take(deleted(8, 10))).toBe('news');
    expect(standing(log)).toEqual([1, 3, 4, 5, 6, 7]);
    expect(log.held).toEqual({ seq: 8, version: 10, storeEpoch: 'one' });
  });

  it('takes nothing twice', () => {
    const log = new ChannelLog();
    log.apply(resync(3, 4));
    expect(log.take(added(4, 5))).toBe('news');
    expect(log.take(added(4, 5))).toBe('known');
    expect(log.take(deleted(4, 6))).toBe('news');
    expect(log.take(added(4, 5))).toBe('known'); // its words do not come back
    expect(standing(log)).toEqual([1, 2, 3]);
  });

  it('says that something is missing, and takes nothing from beyond', () => {
    const log = new ChannelLog();
    expect(log.take(added(1, 1))).toBe('gap');
    log.apply(resync(3, 4));
    expect(log.take(added(5, 6))).toBe('gap');
    expect(log.take(deleted(4, 7))).toBe('gap');
    expect(log.take({ __typename: 'ResyncNeeded', channelId: '101', reason: 'SLOW_READER' })).toBe('gap');
    expect(log.held).toEqual({ seq: 3, version: 4, storeEpoch: 'one' });
  });

  it('drops what a resync does not have', () => {
    const log = new ChannelLog();
    log.apply(resync(3, 4));
    log.apply(resync(2000, 3000, { reason: 'GAP_TOO_LARGE', messages: [message(1999), message(2000)] }));
    expect(standing(log)).toEqual([1999, 2000]);
    expect(log.held).toMatchObject({ seq: 2000, version: 3000 });
  });

  it('believes another store, which has fewer messages', () => {
    const log = new ChannelLog();
    log.apply(resync(9, 12));
    log.apply(resync(5, 6, { reason: 'STORE_CHANGED', storeEpoch: 'two' }));
    expect(log.held).toEqual({ seq: 5, version: 6, storeEpoch: 'two' });
    expect(standing(log)).toEqual([1, 2, 3, 4, 5]);
  });

  it('ends the same wherever a stream breaks off and is told once more from before', () => {
    const events = [added(3, 3), added(4, 4), deleted(3, 5), added(5, 6), deleted(1, 7)];
    for (let seed = 1; seed <= 200; seed++) {
      const below = random(seed);
      const log = new ChannelLog();
      log.apply(resync(2, 2));
      for (let i = 0, breaks = 3; i < events.length; i++) {
        expect(log.take(events[i]!)).not.toBe('gap');
        if (breaks > 0 && below(3) === 0) {
          i = below(i + 1) - 1;
          breaks--;
        }
      }
      expect(standing(log)).toEqual([2, 4, 5]);
      expect(log.held).toEqual({ seq: 5, version: 7, storeEpoch: 'one' });
    }
  });
});
