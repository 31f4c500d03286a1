// Package inspect answers "why does my badge say 7?": every number that a badge is made of, what moved its cursor last,
// and the sentence that support can read out.
//
// Whoever asks about themselves is answered. The state of others is for the support role alone, and each look at it is
// logged, with who looked at whom. It reads, and changes nothing.
//
// The figures of an explanation are of one moment and one statement, so they add up:
//
//	upper bound = newest message - cursor = unread + deleted in the gap + own in the gap
//
// unread is told as the badge tells it, and the other two are counted message by message. So an explanation that does not
// add up is a badge that has drifted, which the model test would find.
package inspect
