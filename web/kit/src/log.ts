import type { ChannelEventsSubscription, MessageFragment, SyncChannelQuery } from './generated';

export type Message = MessageFragment;
export type ChannelSync = SyncChannelQuery['syncChannel'];
export type ChannelEvent = ChannelEventsSubscription['channelEvents'];

/** What a device holds of a channel: the newest seq, and the version up to which it has heard of deletions. */
export interface Held {
  seq: number;
  version: number;
  storeEpoch: string;
}

/** What became of an event: taken, known before, or it shows that something is missing, so that the channel must be synced. */
export type Took = 'news' | 'known' | 'gap';

/** The messages of one channel, as one device holds them. An app keeps this where it keeps its device id. */
export class ChannelLog {
  held: Held | undefined;
  private bySeq = new Map<number, Message>();

  /** The messages, oldest first. */
  messages(): Message[] {
    return [...this.bySeq.values()].sort((a, b) => a.seq - b.seq);
  }

  /** Takes what syncChannel answered in. */
  apply(sync: ChannelSync): void {
    if (sync.__typename === 'ChannelResync') {
      this.bySeq = new Map(); // whatever is not in the newest page may have changed
    } else {
      if (this.held?.storeEpoch !== sync.storeEpoch) this.bySeq = new Map();
      for (const seq of sync.deletedSeqs) this.drop(seq);
    }
    for (const message of sync.messages) this.put(message);
    const { toSeq: seq, version, storeEpoch } = sync;
    const same = sync.__typename === 'ChannelDiff' && this.held?.storeEpoch === storeEpoch ? this.held : undefined;
    this.held = { seq: Math.max(seq, same?.seq ?? 0), version: Math.max(version, same?.version ?? 0), storeEpoch };
  }

  /** Takes an event of channelEvents in, which may be one that the device has. */
  take(event: ChannelEvent): Took {
    if (!this.held || event.__typename === 'ResyncNeeded') return 'gap';
    const seq = event.__typename === 'MessageAdded' ? event.message.seq : event.seq;
    if (seq > this.held.seq + (event.__typename === 'MessageAdded' ? 1 : 0)) return 'gap';
    if (event.version <= this.held.version && seq <= this.held.seq) return 'known';
    if (event.__typename === 'MessageAdded') this.put(event.message);
    else this.drop(seq);
    this.held = {
      ...this.held,
      seq: event.__typename === 'MessageAdded' ? Math.max(this.held.seq, seq) : this.held.seq,
      version: Math.max(this.held.version, event.version),
    };
    return 'news';
  }

  private put(message: Message): void {
    if (this.bySeq.get(message.seq)?.deleted) return; // words that were taken away do not come back
    this.bySeq.set(message.seq, message);
  }

  private drop(seq: number): void {
    const message = this.bySeq.get(seq);
    if (message) this.bySeq.set(seq, { ...message, body: '', deleted: true, mentionsViewer: false });
  }
}
