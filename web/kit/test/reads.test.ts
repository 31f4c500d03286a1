import { expect, it } from 'vitest';
import { Reads } from '../src';

const read = (upToSeq: number, readEpoch = 0, channelId = '101') => ({ channelId, upToSeq, readEpoch });

it('reads that wait are the furthest of the newest epoch', () => {
  const reads = new Reads();
  for (const r of [read(5), read(9), read(7), read(2, 1), read(20, 0), read(1, 1), read(3, 0, '102')]) reads.note(r);
  expect(reads.batch()).toEqual([read(2, 1), read(3, 0, '102')]);
});

it('a read that comes while others are told stays', () => {
  const reads = new Reads();
  reads.note(read(5));
  const batch = reads.batch();
  reads.note(read(8));
  reads.settle(batch);
  expect(reads.batch()).toEqual([read(8)]);
  reads.settle(reads.batch());
  expect(reads.size).toBe(0);
});
