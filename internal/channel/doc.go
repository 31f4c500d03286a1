// Package channel owns channels, who is in them, and the messages in them.
//
// A channel's writers queue up for one row, its head. Under the head's lock a message gets the next seq, a deletion
// and a change of members the next version, so within a channel the order of both is the order of commits: whoever
// sees n sees all before n, and no seq is missing. A send that fails gives its seq back.
//
// What somebody may see of a channel begins where they joined it last. To somebody who is not in it, a channel does
// not exist.
package channel
