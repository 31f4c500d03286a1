import type { Badge, Total } from './badges';
import type * as api from './generated';
import type { Held, Message } from './log';

export type Status = 'off' | 'connecting' | 'live';
export type Icon = api.IconFragment;

/** A channel's name and people, which events do not repeat. */
export type ChannelInfo = NonNullable<api.ChannelQuery['channel']>;

/** What a device was told about a channel when it came back. */
export type CaughtUp =
  | { channelId: string; kind: 'diff'; messages: number; deleted: number }
  | { channelId: string; kind: 'resync'; reason: api.ResyncReason; messages: number };

/** What a device does not show any more once it has come back: what it was told then. */
export interface CatchUp {
  channels: CaughtUp[];
  /** Channels in which it lacked nothing. */
  unchanged: number;
  /** How long it took, in milliseconds. */
  took: number;
}

/** What became of reads that had waited for a connection. */
export interface Replayed {
  channelId: string;
  upToSeq: number;
  outcome: api.ReadOutcome;
}

/** All that a screen shows. A new object whenever something is another than before. */
export interface Shown {
  status: Status;
  badges: Badge[];
  total: Total | undefined;
  icon: Icon | undefined;
  channels: ReadonlyMap<string, ChannelInfo>;
  /** The messages of the channel that is open. */
  open: { channelId: string; messages: Message[] } | undefined;
  held: ReadonlyMap<string, Held>;
  /** What the server knows that the device holds. */
  confirmed: ReadonlyMap<string, number>;
  waitingReads: number;
  /** The last one. */
  catchUp: CatchUp | undefined;
  replayed: Replayed[];
}
