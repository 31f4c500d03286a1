export { Badges, compareIds, type Badge, type BadgeChange, type Total } from './badges';
export { Confirmations, type Confirm, type Cursor } from './confirmations';
export { Device } from './device';
export { ChannelLog, type ChannelEvent, type ChannelSync, type Held, type Message, type Took } from './log';
export { Reads, type Read } from './reads';
export type { CatchUp, CaughtUp, ChannelInfo, Icon, Replayed, Shown, Status } from './shown';
export { Refused, passes, type Sink, type Transport } from './transport';
