package delivery

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/internal/id"
)

// A channel of 100 messages with a version of 200, joined after the 10th.
func state(delivered, version id.Seq) State {
	return State{
		ChannelID: 1, JoinedSeq: 10, HighWaterSeq: 100, Version: 200, DeletedVersion: 150,
		DeliveredSeq: &delivered, DeliveredVersion: &version,
	}
}

func TestWhatADeviceSaysWinsOverItsRecord(t *testing.T) {
	t.Parallel()
	unknown := state(0, 0)
	unknown.DeliveredSeq, unknown.DeliveredVersion = nil, nil
	for _, test := range []struct {
		name  string
		state State
		held  Held
		want  cursor
	}{
		{"nobody knows", unknown, Held{}, cursor{seq: 10}},
		{"the record alone", state(95, 140), Held{}, cursor{true, 95, 95, 140}},
		{"the device alone", unknown, Held{After: new(id.Seq(50)), SinceVersion: new(id.Seq(120))}, cursor{true, 50, 50, 120}},
		{"it holds less, and so has heard of nothing", state(95, 140), Held{After: new(id.Seq(50))}, cursor{true, 50, 50, 0}},
		{"it holds less, and says what it heard", state(95, 140), Held{After: new(id.Seq(50)), SinceVersion: new(id.Seq(120))}, cursor{true, 50, 50, 120}},
		{"it holds more", state(50, 140), Held{After: new(id.Seq(95))}, cursor{true, 95, 95, 140}},
		{"it holds nothing", state(95, 140), Held{After: new(id.Seq(0))}, cursor{true, 0, 10, 0}},
		{"it says a version alone", state(95, 140), Held{SinceVersion: new(id.Seq(120))}, cursor{true, 95, 95, 120}},
		{"a record from before joining", state(5, 140), Held{}, cursor{true, 5, 10, 140}},
	} {
		if got := test.state.merge(test.held); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestReasonsToResync(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		cursor cursor
		want   Reason
	}{
		{"not known", cursor{seq: 10}, NewDevice},
		{"the head", cursor{true, 100, 100, 200}, ""},
		{"past the head", cursor{true, 101, 101, 0}, CursorAhead},
		{"a version to come", cursor{true, 100, 100, 201}, CursorAhead},
		{"the largest gap", cursor{true, 70, 70, 0}, ""},
		{"one more", cursor{true, 69, 69, 0}, GapTooLarge},
		{"a gap counted from joining", cursor{true, 0, 70, 0}, ""},
	} {
		if got := test.cursor.resync(state(0, 0), 30); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestDeletionsAreLookedForWhereThereMayBeSome(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		cursor cursor
		want   bool
	}{
		{"deleted since", cursor{true, 50, 50, 149}, true},
		{"heard of it", cursor{true, 50, 50, 150}, false},
		{"holds one message", cursor{true, 11, 11, 0}, true},
		{"holds none that it may see", cursor{true, 10, 10, 0}, false},
	} {
		if got := test.cursor.mayLackDeletions(state(0, 0)); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// Confirmations come late, twice and in any order, and the record must not depend on it.
func TestMergeDoesNotDependOnOrderOrRepetition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, other := confirmations(t, "one"), confirmations(t, "other")
		both := merge(slices.Concat(one, other))
		for what, again := range map[string][]Confirmed{
			"the other way round":      slices.Concat(other, one),
			"shuffled":                 rapid.Permutation(slices.Concat(one, other)).Draw(t, "shuffled"),
			"merged by parts":          slices.Concat(merge(other), merge(one)),
			"with a part of it again":  slices.Concat(both, one),
			"with everything it holds": slices.Concat(both, both),
		} {
			if diff := cmp.Diff(both, merge(again)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		if !slices.IsSortedFunc(both, func(a, b Confirmed) int { return int(a.ChannelID - b.ChannelID) }) {
			t.Errorf("not in the order of ids: %v", both)
		}
		for _, given := range slices.Concat(one, other) {
			if !slices.ContainsFunc(both, func(m Confirmed) bool { return m.ChannelID == given.ChannelID && m.Seq >= given.Seq }) {
				t.Errorf("%+v is lost in %+v", given, both)
			}
		}
	})
}

func confirmations(t *rapid.T, label string) []Confirmed {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Confirmed {
		return Confirmed{
			ChannelID: id.Channel(rapid.IntRange(1, 3).Draw(t, "channel")),
			Seq:       id.Seq(rapid.IntRange(0, 5).Draw(t, "seq")),
			Version:   rapid.Ptr(rapid.Map(rapid.IntRange(0, 5), func(n int) id.Seq { return id.Seq(n) }), true).Draw(t, "version"),
		}
	}), 0, 6).Draw(t, label)
}
