// Package receipt answers who has read a message, in channels of any size.
//
// # The watermark
//
// A member's receipt_seq is the furthest message that they have ever read. Reading and sending move it, forward only: a
// mark unread does not take back that somebody has read, and joining does not make it up. There is no row for a reader
// and a message, so a mark read costs the same whatever it passes.
//
// # The audience
//
// Of a message, it is those who have been members without a break since before it was sent, without its sender and
// without those who do not share receipts. Whoever leaves is in it no more, and comes back into those of later messages
// alone. Counts and lists are taken from the same rows by one definition, the view receipt_audience.
//
// # Privacy
//
// Who does not share receipts is in nobody's audience, and is shown zeros and empty lists. Their own badges and devices
// are as before; what they read meanwhile shows when they share again.
//
// # While somebody watches
//
// Package live follows the messages that are watched by a Bitmap of those who have yet to read: warmed by one read of the
// watermarks, and changed by what mark reads publish. A bit is the member_index, a small number given out in order of
// joining. A bitmap lives as long as somebody watches, is read anew at regular intervals and whenever somebody leaves or
// changes what they share, and is the answer to nothing else: a query counts watermarks.
package receipt
