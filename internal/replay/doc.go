// Package replay sends recorded chat traffic through the service, lets people read it, and proves at the end that
// every badge of everyone is right, also on the screens that were open all the while, and everybody's icon.
//
// # What happens
//
// Whoever writes or is named in a channel is its member from the start. Each line of the trace is a message in its
// channel; with a reply_to it is also one in the direct channel of the two, which the first such line makes. People
// read before they write and in bursts, from several devices whose calls come twice, late and out of order; now and
// then they mark unread, mute, delete, leave and come back. Who does what after which line follows from the seed
// alone: two runs of one trace with one seed end with the same badges.
//
// # What waits for what
//
// Calls run side by side, so races are real, and only where the order of two makes a difference does one wait:
//
//	send, leave, come back,              after all of these that came before in the channel
//	mark read past the newest message
//
//	mark unread, mute, leave, come back, after all that this person did in the channel before; whatever they do
//	mark read past the newest message    there next comes after it
//
//	mark read, delete, a repeated send   after what was sent in the channel before; whatever comes next in the
//	                                     channel, their own sends too, does not wait for it
//
// What everybody must see at the end is therefore known beforehand, whatever the scheduling.
//
// # The proof
//
// What must come out is kept in memory by one goroutine that follows the trace, in the plainest way there is: lists
// of messages, and a cursor for each person and channel. It shares no code with what it judges. At the end each
// channel's messages are read back, and must be those sent, their seqs without a gap. Then every badge and total of
// everyone is read, page by page, and must be what counting the messages one by one gives.
//
// # The audience
//
// Meanwhile subscribers watch, on every process that is given, and keep on their screens what they are told as the
// schema has clients do. Some take each change at once, some look now and then or only at the end, and some come and
// go; some watch a few channels, or muted ones too. None of them may be shown an older badge after a newer one, or
// what it did not ask for. When all is done each must come to show what the person must see, by itself and in a
// bounded time.
//
// # The icons
//
// Workers run all the while, and people look at who is newly unread, and some acknowledge: what they see, what they saw
// some time ago, or without saying. Up to where one covers cannot be told from outside, as what was sent may have arrived
// or not. It is made decidable in three ways. Half of the people never acknowledge, so all who wrote to them are known.
// Now and then all comes to rest: nobody sends until everything has arrived, and what is acknowledged then is covered
// exactly. And every send, mute, look and acknowledge is timed by one clock, so where one ended before another began it
// is known which was first. Where they were truly at once, either outcome is taken, for that message alone.
package replay
