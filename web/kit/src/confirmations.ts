import type { Held } from './log';
import { Refused, passes } from './transport';

export interface Cursor {
  channelId: string;
  seq: number;
  version: number;
}

/** Sends a batch. Rejects with Refused where the server refuses it. */
export type Confirm = (cursors: Cursor[], storeEpoch: string) => Promise<void>;

const maxBatch = 1000; // the API's

/**
 * Tells the server what the device holds, in batches: a burst of messages is one call, a failure is tried again, and only
 * the newest of each channel is ever sent. It is transport, so nothing that people see waits for it.
 */
export class Confirmations {
  private storeEpoch: string | undefined;
  private waiting = new Map<string, Cursor>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private sending = false;
  private failures = 0;
  private confirm: Confirm | undefined;

  constructor(private readonly delay = 150) {}

  /** Notes what the device holds of a channel. */
  note(channelId: string, held: Held): void {
    if (held.storeEpoch !== this.storeEpoch) {
      this.waiting.clear(); // those were seqs of other data
      this.storeEpoch = held.storeEpoch;
    }
    const before = this.waiting.get(channelId);
    if (before && (before.seq > held.seq || (before.seq === held.seq && before.version >= held.version))) return;
    this.waiting.set(channelId, { channelId, seq: held.seq, version: held.version });
    this.schedule(this.waiting.size >= maxBatch ? 0 : this.delay);
  }

  /** The device is no longer in a channel. */
  forget(channelId: string): void {
    this.waiting.delete(channelId);
  }

  /** There is a connection, by which to confirm. */
  start(confirm: Confirm): void {
    this.confirm = confirm;
    this.failures = 0;
    if (this.waiting.size > 0) this.schedule(this.delay);
  }

  /** There is none. What waits does so until there is. */
  stop(): void {
    this.confirm = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private schedule(delay: number): void {
    if (!this.confirm || this.timer !== undefined || this.sending) return;
    this.timer = setTimeout(() => void this.flush(), delay);
  }

  private async flush(): Promise<void> {
    this.timer = undefined;
    const confirm = this.confirm;
    const batch = [...this.waiting.values()].slice(0, maxBatch);
    const storeEpoch = this.storeEpoch;
    if (!confirm || batch.length === 0 || storeEpoch === undefined) return;
    this.sending = true;
    try {
      await this.send(confirm, batch, storeEpoch);
      this.failures = 0;
    } catch {
      this.failures++; // later
    } finally {
      this.sending = false;
    }
    if (this.waiting.size > 0) this.schedule(Math.min(this.delay * 2 ** this.failures, 30_000));
  }

  private async send(confirm: Confirm, batch: Cursor[], storeEpoch: string): Promise<void> {
    try {
      await confirm(batch, storeEpoch);
    } catch (error) {
      if (passes(error)) throw error;
      // A batch is taken whole or not at all, so one channel that the person has left would hold up all others.
      if (error instanceof Refused && error.code === 'NOT_FOUND' && batch.length > 1) {
        for (const cursor of batch) await this.send(confirm, [cursor], storeEpoch);
        return;
      }
    }
    for (const cursor of batch) {
      if (this.storeEpoch === storeEpoch && this.waiting.get(cursor.channelId) === cursor) this.waiting.delete(cursor.channelId);
    }
  }
}
