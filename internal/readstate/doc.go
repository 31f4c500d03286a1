// Package readstate owns a person's cursor in a channel, and the badge that follows from it.
//
// # The badge
//
// A channel's head is the seq of its newest message; a person's cursor is the seq they have read up to. The upper
// bound of what is unread is head - cursor, two integers, whatever the size of the channel. The exact count takes
// away what was deleted in between and what is the person's own, and only channels where there is either are
// counted by rows.
//
// # What moves a cursor
//
//	join, come back    to the head: nothing from before is counted
//	send               to the message sent
//	mark read          forward only, to the head at most
//	mark unread        back only, to the seq of joining at most, and into a new epoch
//
// Forward moves merge by maximum, so they may come twice, late and in any order. A mark unread is the one move that
// such a merge would undo; therefore it begins a new epoch, and a mark read that carries an older one is void.
//
// # Versions
//
// Of two badges of one person and channel, the one with the larger version is the later. The version is the sum of
// the head's, which rises with each send, delete and change of members, and the read state's, which rises with each
// move, mute, join and leave. Neither ever falls, so neither does the sum, within one store epoch.
package readstate
