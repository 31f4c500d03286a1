import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Confirmations, Refused, type Cursor } from '../src';

const held = (seq: number, version = seq, storeEpoch = 'one') => ({ seq, version, storeEpoch });

describe('confirmations', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const collect = (answer: (cursors: Cursor[], storeEpoch: string) => void = () => {}) => {
    const calls: { cursors: Cursor[]; storeEpoch: string }[] = [];
    const confirm = async (cursors: Cursor[], storeEpoch: string) => {
      calls.push({ cursors, storeEpoch });
      answer(cursors, storeEpoch);
    };
    return { calls, confirm };
  };

  it('of a burst are one call, with the newest of each channel', async () => {
    const { calls, confirm } = collect();
    const confirmations = new Confirmations(100);
    confirmations.start(confirm);
    for (let seq = 1; seq <= 50; seq++) for (const channelId of ['101', '102']) confirmations.note(channelId, held(seq));
    confirmations.note('101', held(3)); // late
    await vi.advanceTimersByTimeAsync(1000);
    expect(calls).toEqual([{ storeEpoch: 'one', cursors: [{ channelId: '101', seq: 50, version: 50 }, { channelId: '102', seq: 50, version: 50 }] }]);
  });

  it('wait for a connection', async () => {
    const { calls, confirm } = collect();
    const confirmations = new Confirmations(100);
    confirmations.note('101', held(5));
    await vi.advanceTimersByTimeAsync(60_000);
    confirmations.start(confirm);
    confirmations.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls).toEqual([]);
    confirmations.start(confirm);
    await vi.advanceTimersByTimeAsync(1000);
    expect(calls).toHaveLength(1);
  });

  it('are tried again, with what is the newest then', async () => {
    let away = true;
    const { calls, confirm } = collect(() => {
      if (away) throw new Error('the network');
    });
    const confirmations = new Confirmations(100);
    confirmations.start(confirm);
    confirmations.note('101', held(5));
    await vi.advanceTimersByTimeAsync(150);
    confirmations.note('101', held(6));
    away = false;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls.map(({ cursors }) => cursors[0]?.seq)).toEqual([5, 6]);
  });

  it('note what comes while a call is under way', async () => {
    const calls: number[] = [];
    const confirmations = new Confirmations(100);
    confirmations.start(async ([cursor]) => {
      calls.push(cursor?.seq ?? 0);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    });
    confirmations.note('101', held(5));
    await vi.advanceTimersByTimeAsync(500);
    confirmations.note('101', held(7));
    await vi.advanceTimersByTimeAsync(5000);
    expect(calls).toEqual([5, 7]);
  });

  it('of a channel that the person has left do not hold up the others', async () => {
    const { calls, confirm } = collect((cursors) => {
      if (cursors.some(({ channelId }) => channelId === '102')) throw new Refused('no such channel', 'NOT_FOUND');
    });
    const confirmations = new Confirmations(100);
    confirmations.start(confirm);
    for (const channelId of ['101', '102', '103']) confirmations.note(channelId, held(5));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls.map(({ cursors }) => cursors.map(({ channelId }) => channelId).join())).toEqual(['101,102,103', '101', '102', '103']);
  });

  it('of other data are dropped', async () => {
    const { calls, confirm } = collect();
    const confirmations = new Confirmations(100);
    confirmations.note('101', held(90, 90, 'one'));
    confirmations.note('102', held(3, 3, 'two'));
    confirmations.start(confirm);
    await vi.advanceTimersByTimeAsync(1000);
    expect(calls).toEqual([{ storeEpoch: 'two', cursors: [{ channelId: '102', seq: 3, version: 3 }] }]);
  });

  it('go out in calls of a thousand', async () => {
    const { calls, confirm } = collect();
    const confirmations = new Confirmations(100);
    for (let n = 1; n <= 2500; n++) confirmations.note(String(n), held(1));
    confirmations.start(confirm);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(calls.map(({ cursors }) => cursors.length)).toEqual([1000, 1000, 500]);
  });
});
