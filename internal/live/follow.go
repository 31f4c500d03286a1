package live

import (
	"slices"

	"tidemark/internal/readstate"
)

// held is a copy of a badge.
type held struct {
	readstate.Badge
	// atLeast says that counting has ended at a cap: there may be more than the badge says.
	atLeast bool
}

// newHeld is a badge that was counted to limit.
func newHeld(b readstate.Badge, limit int) held {
	return held{Badge: b, atLeast: b.Countable > limit || b.Naming > limit}
}

// undercounted reports whether counting has ended before limit.
func (h held) undercounted(limit int) bool {
	return h.atLeast && h.Countable <= limit && h.Naming <= limit
}

// follow returns the badge after the next event of its channel. It fails where that takes another count, and where there
// is no badge any more.
func (h held) follow(e *event) (held, bool) {
	h.HeadVersion = e.Version
	switch e.Kind {
	case sent:
		h.HighWaterSeq, h.Activity = e.Seq, e.Badge.Activity
		switch {
		case e.Sender != h.UserID:
			h.Countable++
			if e.names(h.UserID) {
				h.Naming++
			}
		case e.Badge.StateVersion > h.StateVersion: // else their cursor has moved on since
			h = held{Badge: *e.Badge}
		}
	case deleted:
		if e.Sender == h.UserID || e.Seq <= h.LastReadSeq {
			break // it did not count
		}
		if h.atLeast {
			return h, false
		}
		h.Countable--
		if e.names(h.UserID) {
			h.Naming--
		}
	case members:
		return h, !slices.Contains(e.Left, h.UserID)
	}
	return h, true
}
