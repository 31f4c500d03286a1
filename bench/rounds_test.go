package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestMeasureRepeatsSpoiltRounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		spoilt func(try int) bool
		rounds int
		err    error
	}{
		{"none", func(int) bool { return false }, 3, nil},
		{"every other", func(try int) bool { return try%2 == 0 }, 3, nil},
		{"all but one", func(try int) bool { return try != 4 }, 1, nil},
		{"all", func(int) bool { return true }, 0, errRestless},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := &lab{options: options{rounds: 3}, progress: t.Output()}
			tries := 0
			found, err := measure(t.Context(), l, func(context.Context) (int, error) {
				tries++
				if test.spoilt(tries) {
					return 0, errRestless
				}
				return tries, nil
			})
			if len(found) != test.rounds || !errors.Is(err, test.err) {
				t.Errorf("%d rounds count and the error is %v, want %d and %v", len(found), err, test.rounds, test.err)
			}
			if tries > restlessTries*l.rounds {
				t.Errorf("%d tries", tries)
			}
		})
	}
}

func TestMeasureEndsOnAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	l := &lab{options: options{rounds: 3}, progress: t.Output()}
	if _, err := measure(t.Context(), l, func(context.Context) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestRestless(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before, after time.Duration
		want          bool
	}{
		{100, 100, false},
		{100, 200, false},
		{200, 100, false},
		{100, 201, true},
		{201, 100, true},
	} {
		if got := restless(test.before, test.after); got != test.want {
			t.Errorf("from %d to %d: %v", test.before, test.after, got)
		}
	}
}

func TestInParallel(t *testing.T) {
	t.Parallel()
	var last [connections]int
	p, err := inParallel(t.Context(), 5*time.Millisecond, func(_ context.Context, caller, n int) error {
		last[caller] = n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, n := range last {
		calls += n + 1
	}
	if p.calls > calls || p.calls < calls-connections {
		t.Errorf("%d calls, want %d", p.calls, calls)
	}
	if p.took < 5*time.Millisecond || p.perSecond() <= 0 {
		t.Errorf("%d calls took %v", p.calls, p.took)
	}

	broken := errors.New("broken")
	if _, err := inParallel(t.Context(), time.Minute, func(_ context.Context, caller, n int) error {
		if caller == 3 && n == 2 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}

func TestByTurns(t *testing.T) {
	t.Parallel()
	var order []int
	took, err := byTurns(2, 3, func(way, n int) error {
		order = append(order, way, n)
		return nil
	})
	if err != nil || len(took) != 2 {
		t.Fatalf("%v, %v", took, err)
	}
	want := []int{0, 0, 1, 0, 0, 1, 1, 1, 0, 2, 1, 2}
	for i := range want {
		if order[i] != want[i] {
			t.Fatalf("called %v, want %v", order, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{10: "10", 1000: "1k", 30_000: "30k", 1_000_000: "1M", 1_500_000: "1500k", 1234: "1234"} {
		if got := short(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}
