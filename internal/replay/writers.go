package replay

import (
	"fmt"
	"math"
	"slices"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

// stay is a time in which a person was a member, and how they muted meanwhile.
type stay struct {
	joined, left id.Seq // the newest message at that time
	mutes        []*silence
}

// silence is a mute, or its end, that was done beside what others sent. Its act fills it in.
type silence struct {
	span
	muted bool
}

// writing is a message of a sender that counts for somebody, or may: whether it came before they muted is not known
// where the two were done at once.
type writing struct {
	span
	surely bool
}

// stay returns the stay of a member in which a message was sent, and nil where they were none. Who joins or leaves does
// so between two messages, so it is known.
func (s *seat) stay(seq id.Seq) *stay {
	for _, st := range s.stays {
		if st.joined < seq && seq <= st.left {
			return st
		}
	}
	return nil
}

// muted reports whether the channel was muted when something was done, and whether that can be told.
func (st *stay) muted(when span) (muted, known bool) {
	for _, m := range st.mutes {
		switch {
		case when.end < m.begin: // and so before all that follow
			return muted, true
		case when.begin < m.end:
			return false, false
		}
		muted = m.muted
	}
	return muted, true
}

// writers returns who wrote to a person, with each message that counts or may: in direct channels and small groups that
// are not muted, and where it names them. That something is deleted later changes nothing.
func (a *actor) writers(small int) map[id.User][]writing {
	writers := make(map[id.User][]writing)
	for _, s := range a.seats {
		for i := range s.room.messages {
			m := &s.room.messages[i]
			if m.sender == a.id {
				continue
			}
			few := m.members <= small
			named := slices.Contains(m.named, a.id) || few && m.toAll
			if !few && !named {
				continue
			}
			st := s.stay(id.Seq(i + 1))
			if st == nil {
				continue
			}
			muted, known := st.muted(*m.when)
			if named || !muted || !known {
				writers[m.sender] = append(writers[m.sender], writing{*m.when, named || known})
			}
		}
	}
	return writers
}

// judge says what is wrong with what a person's icon ever showed, if anything. idle are the moments before which all
// that was sent had arrived. Workers run meanwhile, so of some senders it cannot be told whether they must be shown.
//
// What an acknowledge covers lies between two moments. It covers what had arrived before it, or before the glance whose
// position it sends, and never what was begun after that glance: its position is larger. A sender who surely wrote
// after that and has arrived must be shown. One all of whose messages are surely covered, or yet to come, must not.
func (a *actor) judge(small int, idle []int64) string {
	writers := a.writers(small)
	for _, g := range a.icon.glances {
		if wrong := a.icon.judge(g, writers, idle); wrong != "" {
			return wrong
		}
	}
	return a.icon.lost(writers)
}

func (ic *icon) judge(g *glance, writers map[id.User][]writing, idle []int64) string {
	var covered, maybe int64 // sent before, begun before
	began, ended := false, false
	for _, k := range ic.acknowledgments {
		if k.end < g.begin {
			covered, ended = max(covered, k.coversBefore()), true
		}
		if k.begin < g.end {
			maybe, began = max(maybe, k.coversUntil()), true
		}
	}
	if g.ever && !began || !g.ever && ended {
		return fmt.Sprintf("says %v to whether it was ever acknowledged", g.ever)
	}
	there := make(map[id.User]bool, len(g.senders))
	older := int64(math.MaxInt64) // whoever surely wrote after it must come before one who was listed already
	for _, sender := range g.senders {
		there[sender] = true
		var newest, surely int64 // when they wrote last: ended at the latest, and begun at the earliest
		possible := false
		for _, w := range writers[sender] {
			if w.begin < g.end && w.end > covered {
				possible = true
			}
			if w.begin < g.end {
				newest = max(newest, w.end)
			}
			if w.surely && w.end < g.idle {
				surely = max(surely, w.begin)
			}
		}
		if !possible {
			return fmt.Sprintf("shows person %d, who has not written to them since", sender)
		}
		if surely > older {
			return fmt.Sprintf("shows person %d below one who wrote before", sender)
		}
		if i, _ := slices.BinarySearch(idle, newest); i < len(idle) {
			older = min(older, idle[i])
		}
	}
	if len(g.senders) == newlyunread.MaxFirst { // others may be left out
		return ""
	}
	for sender, written := range writers {
		if !there[sender] && slices.ContainsFunc(written, func(w writing) bool {
			return w.surely && w.begin > maybe && w.end < g.idle
		}) {
			return fmt.Sprintf("does not show person %d, who has written to them since", sender)
		}
	}
	return ""
}

// lost looks for a sender who was never shown at all: not in the end, nor whenever something was acknowledged by its
// position. Whatever a position covers was shown with it, or with one acknowledged before.
func (ic *icon) lost(writers map[id.User][]writing) string {
	last := ic.glances[len(ic.glances)-1]
	shown, whole := make(map[id.User]bool), true
	see := func(g *glance) {
		whole = whole && len(g.senders) < newlyunread.MaxFirst
		for _, sender := range g.senders {
			shown[sender] = true
		}
	}
	see(last)
	var unseen int64 // what was begun before may have been covered by one who did not look
	for _, k := range ic.acknowledgments {
		if k.of != nil {
			see(k.of)
		} else {
			unseen = max(unseen, k.end)
		}
	}
	if !whole {
		return ""
	}
	for sender, written := range writers {
		if !shown[sender] && slices.ContainsFunc(written, func(w writing) bool {
			return w.surely && w.begin > unseen && w.end < last.idle
		}) {
			return fmt.Sprintf("has never shown person %d", sender)
		}
	}
	return ""
}
