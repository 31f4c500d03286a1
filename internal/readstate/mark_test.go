package readstate

import (
	"testing"

	"tidemark/internal/id"
)

// Each outcome is the first that holds of void, clamped, unchanged, advanced.
func TestWhyACursorStayed(t *testing.T) {
	t.Parallel()
	now := Badge{HighWaterSeq: 12, LastReadSeq: 12, ReadEpoch: 3}
	behind := Badge{HighWaterSeq: 12, LastReadSeq: 9, ReadEpoch: 3}
	for _, test := range []struct {
		name    string
		upTo    id.Seq
		epoch   *int
		badge   Badge
		outcome Outcome
		settled bool
	}{
		{"it is there", 12, nil, now, Unchanged, true},
		{"it is further", 5, new(3), now, Unchanged, true},
		{"past the newest", 13, nil, now, ClampedToNewest, true},
		{"an older epoch", 5, new(2), now, VoidEpoch, true},
		{"an older epoch and past the newest", 13, new(0), now, VoidEpoch, true},
		{"a newer epoch counts as the stored one", 12, new(9), now, Unchanged, true},
		{"an older epoch in which it could move", 12, new(2), behind, VoidEpoch, true},
		{"a message came in between", 12, nil, behind, Unchanged, false},
		{"a message came, and it asks for more", 13, nil, behind, ClampedToNewest, false},
		{"a message came, but not before this", 9, nil, behind, Unchanged, true},
	} {
		outcome, settled := Cursor{UpToSeq: test.upTo, ReadEpoch: test.epoch}.stayed(test.badge)
		if outcome != test.outcome || settled != test.settled {
			t.Errorf("%s: %s, settled %v; want %s, %v", test.name, outcome, settled, test.outcome, test.settled)
		}
	}
}

func TestHowACursorMoved(t *testing.T) {
	t.Parallel()
	for upTo, want := range map[id.Seq]Outcome{11: Advanced, 12: Advanced, 13: ClampedToNewest, id.MaxSeq: ClampedToNewest} {
		if got := (Cursor{UpToSeq: upTo}).moved(12); got != want {
			t.Errorf("up to %d: %s, want %s", upTo, got, want)
		}
	}
}
