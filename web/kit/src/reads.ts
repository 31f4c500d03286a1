export interface Read {
  channelId: string;
  upToSeq: number;
  /** That of the badge when the person read. It makes a read that waits here void, once it was marked unread elsewhere. */
  readEpoch: number;
}

const maxBatch = 1000; // the API's

/**
 * Reads that the server was not told of yet. Each carries the epoch in which it was made, so one that waits for hours
 * cannot undo what was done meanwhile, and telling it twice does no harm.
 */
export class Reads {
  private readonly waiting = new Map<string, Read>();

  /** Notes a read. Of one channel the newest epoch counts, and in it the furthest. */
  note(read: Read): void {
    const before = this.waiting.get(read.channelId);
    if (before && (before.readEpoch > read.readEpoch || (before.readEpoch === read.readEpoch && before.upToSeq >= read.upToSeq))) return;
    this.waiting.set(read.channelId, read);
  }

  /** A batch to send. What is sent waits on until it is settled. */
  batch(): Read[] {
    return [...this.waiting.values()].slice(0, maxBatch);
  }

  /** The server has answered for these, whatever it said. */
  settle(batch: Read[]): void {
    for (const read of batch) if (this.waiting.get(read.channelId) === read) this.waiting.delete(read.channelId);
  }

  get(channelId: string): Read | undefined {
    return this.waiting.get(channelId);
  }

  forget(channelId: string): void {
    this.waiting.delete(channelId);
  }

  clear(): void {
    this.waiting.clear();
  }

  get size(): number {
    return this.waiting.size;
  }
}
