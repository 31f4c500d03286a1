package readstate

import (
	"testing"

	"tidemark/internal/fault"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n, limit int
		label    string
		capped   bool
	}{
		{0, 99, "0", false},
		{1, 99, "1", false},
		{99, 99, "99", false},
		{100, 99, "99+", true},
		{2, 1, "1+", true},
		{MaxCap, MaxCap, "10000", false},
		{MaxCap + 1, MaxCap, "10000+", true},
	} {
		badge := Badge{Countable: test.n, Naming: test.n}
		total := Total{Countable: test.n, Naming: test.n}
		for what, count := range map[string]func(int) (Count, error){
			"unread": badge.Unread, "mentions": badge.Mentions, "total unread": total.Unread, "total mentions": total.Mentions,
		} {
			got, err := count(test.limit)
			if err != nil || got.Label() != test.label || got.Capped != test.capped {
				t.Errorf("%s: %d to %d is %q, %+v, %v", what, test.n, test.limit, got.Label(), got, err)
			}
		}
		if unread, mentions := total.Shown(); unread != mentions || unread.Count != min(test.n, DefaultCap) {
			t.Errorf("%d is shown as %v and %v", test.n, unread, mentions)
		}
	}
}

func TestCapsOutOfBounds(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{-1, 0, MaxCap + 1} {
		if _, err := (Badge{}).Unread(limit); fault.CodeOf(err) != fault.BadUserInput {
			t.Errorf("cap %d: %v", limit, err)
		}
	}
}

func TestUpperBoundIsNeverBelowZero(t *testing.T) {
	t.Parallel()
	if got := (Badge{HighWaterSeq: 3, LastReadSeq: 5}).UnreadUpperBound(); got != 0 {
		t.Errorf("bound %d", got)
	}
}

func TestTotalLeavesOutMuted(t *testing.T) {
	t.Parallel()
	var total Total
	for _, b := range []Badge{
		{Countable: 3, Naming: 1},
		{Countable: 5, Naming: 5, Muted: true},
		{HighWaterSeq: 9}, // all of its unread messages were deleted
		{Countable: 2},
	} {
		total.Add(b)
	}
	if want := (Total{Countable: 5, Naming: 1, UnreadChannels: 2}); total != want {
		t.Errorf("total %+v, want %+v", total, want)
	}
}
