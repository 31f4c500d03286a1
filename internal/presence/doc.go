// Package presence knows who has a connection open, in whatever process.
//
// Each process notes in a Store that all share whom it serves, for some time to come, and does so again long before
// that time is over. A process that is killed notes nothing any more, so its people are away when the time is over,
// and nobody has to find out about it.
//
//	a person's first connection ──> noted within moments
//	while there are any         ──> noted again, together with everybody else's
//	the last one ends           ──> taken away within moments
//	the process ends            ──> all that it noted is taken away
//
// A process has one entry for a person, however many connections they have: it counts those itself, and they all end
// with it. So what is written grows with the people, not with their connections.
//
// # What can be wrong, and for how long
//
// The store may be away, slow or emptied at any moment. Who is connected may then be unknown or seem away until the
// store is back, and at most until everybody is noted again. Who is away may seem connected for as long as an entry lasts,
// where its process was killed or could not take it away. Who asks is to choose the error that does no harm: of whom
// nothing is known may be away.
package presence
