// Package live keeps open screens right: it tells subscribers what changes, as it changes.
//
// # The hub
//
// A process has one Hub. For each person whom it serves, however many sockets they have, it holds a copy of their
// badges, and for each of their channels the stretch of the channel's latest events. What comes in is worked into the
// copies by arithmetic: a message adds one to the badge of everybody but its sender, a deletion takes one away, a
// cursor that moved brings the badge that its own process has just read. No update reads the store, unless somebody
// joins, something is missing, or the counts that are held end at a cap.
//
//	     commit            publication                 event, or badge
//	domain ------> Hub ---------------> Broker ---> Hub -----------------> streams ---> sockets
//	   of any process                          of every process
//
// # Why a copy is right
//
// A badge is made of two rows, the channel's head and the person's read state, and each has a version that rises by
// one with every change. A copy follows the head one version at a time, so it knows what it has missed: an event that
// comes too early waits a moment for those before it, and if they do not come, the copy is read from the store. Of
// read states the larger version wins. Publications may therefore come twice, late, in any order, or not at all.
//
// That the very last one was lost nobody can tell from what comes after. So every copy is compared with the store, by
// versions, every ReconcileEvery, and whenever the broker's link was down. Whoever subscribes hears of the topics
// first, and reads then: no change falls between. If it is another store than before, one that gives versions out
// again, all copies go.
//
// # Who has read a message
//
// Of a message whose readers somebody watches, a bitmap tells who has yet to read, and how far somebody has read is
// published on a topic of its own. That is never undone, so it may come in any order; and a bitmap is read again whenever
// somebody leaves or shares no more, and as often as copies are compared. See package receipt.
//
// # Streams
//
// A stream holds no queue. What waits for a slow reader of badges is which channels changed: the badges are taken
// from the copies when the reader is ready, so it gets the newest once. A reader of a channel's events is a position
// in the stretch that all of them share; one that falls more than MaxLag behind is told to start afresh. A reader
// never holds up anybody else, and what waits for one is bounded.
package live
