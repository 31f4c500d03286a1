// Package redis is Tidemark's side of Redis: how it connects, and everything that it keeps there.
//
// Nothing in Redis is the only copy of anything. Any key may vanish or be evicted, and the server may be away, at
// any moment; then a call fails in about a second at most, and the domain that asked goes on without.
//
// Keys are kind:{id}. The braces are part of the name: in a cluster they keep what belongs together in one place.
//
//	newly_unread:{user}            sorted set: who wrote, by position, and above them what the copy is; ten minutes
//	newly_unread_mark:{partition}  string: store, generation and position up to which copies lack nothing; 15 seconds
//	newly_unread_token:{partition} string: what a replica has to show before it is believed; a minute
//	ratelimit:{user}   string: when the person's allowance is whole again, in microseconds; expires then
//	presence:{user}    sorted set: the processes that serve the person, scored by when each entry expires, in milliseconds;
//	                   expires with the last
//
// What is published goes to the topics of package live, and each process proves its own link:
//
//	channel:{channel}  topic: what happens in a channel
//	user:{user}        topic: what happens to one person
//	receipts:{channel} topic: how far a channel's members have read, for those who watch
//	probe:{random}     topic: a process tells itself, with an empty message, that its link works
//
// A publication reaches those who are connected at that moment, once, and nobody else. A link is one connection that
// receives. It is made, proven and given up as a whole, and whoever listens is told of the hole that may be between
// one and the next:
//
//	           connection made,           all that is wanted is confirmed,
//	           everything asked for       and a probe came back
//	down ---------------------> unproven ---------------------------------> up: Resumed
//	 ^                              |                                        |
//	 +------------------------------+----------------------------------------+
//	       an error, an answer to nothing that was asked, or no probe in time
//
// Everything that reads and then writes is one Lua script, in a file of its own.
package redis
