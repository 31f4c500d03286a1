// Package newlyunread owns the number on the messages icon: how many different people wrote to somebody since they
// opened it last. It is not the number of unread messages, and reading changes nothing about it.
//
// # Who counts
//
// Whoever writes to a person in a direct channel, in a group of at most so many members, or wherever they name them;
// never the person themselves, nor in a channel that is muted when the message comes, unless it names them. What happens
// to the message or the channel later changes nothing: who left, muted or joined since is as they were then. A message
// to everyone in a larger group names nobody.
//
// Under a stricter rule only what could not be delivered counts: a Worker that is given a Presence does not store what is
// for those who are known to be connected when it would. Of whom that is not known counts.
//
// # From a message to a number
//
//	send ──> outbox ──> relay ──> events ──> projector ──> arrivals
//	          in its      to whom    by         one at a       who wrote to whom,
//	          commit      it counts  recipient  time for each  and when last
//	                                            partition
//
// Recipients are spread over partitions, and a partition has one writer at a time, who holds its lease. A fence in the
// lease rises when it changes hands, and every write demands it: a worker that was thought dead writes nothing.
//
// # Positions, not times
//
// A partition's writer gives out positions that rise strictly, each in the transaction that stores what it is for. So
// whoever sees a position sees all arrivals up to it, which no clock can promise. A client is told up to where it was
// shown everything, and acknowledges that: whatever comes later has a larger position, and counts, also where its send
// began before. To acknowledge merges by maximum, and nothing that was never given out is taken.
//
// # Copies
//
// Numbers are read far more often than they change, so a Projection keeps copies of them. A copy that cannot be trusted is as
// none: then the Store is read. A worker applies to copies what it has stored, without a transaction; see follow.go for what
// becomes of them when it cannot. Two layers spare the projection writes: a batch is coalesced, and a Check says what is
// there already.
//
// # What can be lost
//
// Nothing. A batch is taken, stored and its positions noted in one transaction, so it is done once however often a worker
// dies. What cannot be stored again and again is set aside and counted, and holds up nobody.
package newlyunread
