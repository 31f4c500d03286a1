// Package delivery owns what each device of a person has received, and brings a device up to date after it was away.
// It drives catch-up only: a badge follows from what a person has read, on whatever device.
//
// # Diff or resync
//
// A device that lacks little gets a diff: the messages after its cursor, in pages, and the seqs of messages that it
// may hold and must drop. One that lacks much, or whose cursor means nothing here, is told to resync: it takes the
// newest page and drops the rest, so the cost is bounded whatever the gap.
//
// # What a device lacks
//
// What the client says it holds wins over the record kept here, because a phone restored from a backup holds less
// than it once confirmed. A deletion is stamped with a version of its channel, given out under the lock of the
// channel's head. A diff carries the version it was read at, and the next one lists what was deleted after it. The
// head is read before the messages are, so what happens in between has a later version and is told again; nothing
// is missed, and no clock is asked.
package delivery
