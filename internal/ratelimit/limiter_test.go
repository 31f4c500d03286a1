package ratelimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("connection refused")

// flaky is a Store that can be away: it fails, or it answers nothing until the caller's time is up.
type flaky struct {
	*ratelimit.Memory
	asked       atomic.Int64
	fails, hang atomic.Bool
}

func newFlaky() *flaky { return &flaky{Memory: ratelimit.NewMemory()} }

func (f *flaky) Take(ctx context.Context, user id.User, cost int, limit ratelimit.Limit) (time.Duration, error) {
	f.asked.Add(1)
	if f.hang.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if f.fails.Load() {
		return 0, errAway
	}
	return f.Memory.Take(ctx, user, cost, limit)
}

func newLimiter(t *testing.T, limit ratelimit.Limit, shared ratelimit.Store) (*ratelimit.Limiter, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	l, err := ratelimit.New(limit, shared, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return l, &log
}

// admitted counts how many of n calls of cost 1 are.
func admitted(ctx context.Context, l *ratelimit.Limiter, user id.User, n int) int {
	ok := 0
	for range n {
		if l.Allow(ctx, user, 1) == nil {
			ok++
		}
	}
	return ok
}

// call is one step of a drawn history.
type call struct {
	pause time.Duration // before it
	user  id.User
	cost  int
	again bool // whether a refused caller waits as told and tries once more
}

// TestNeverMoreThanTheLimit draws limits and calls. Whatever they are, no window of time admits more than
// Burst + Rate*t, and whoever waits as long as they were told to is admitted.
func TestNeverMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limit := ratelimit.Limit{
			Rate:  rapid.Float64Range(0.01, 1e4).Draw(r, "rate"),
			Burst: rapid.IntRange(1, 50).Draw(r, "burst"),
		}
		refill := limit.Interval() * time.Duration(limit.Burst)
		calls := rapid.SliceOf(rapid.Custom(func(r *rapid.T) call {
			return call{
				pause: time.Duration(rapid.Int64Range(0, int64(refill)).Draw(r, "pause")),
				user:  id.User(rapid.IntRange(1, 3).Draw(r, "user")),
				cost:  rapid.IntRange(1, limit.Burst).Draw(r, "cost"),
				again: rapid.Bool().Draw(r, "again"),
			}
		})).Draw(r, "calls")
		var err error
		synctest.Test(t, func(t *testing.T) { err = replay(t.Context(), limit, calls) })
		if err != nil {
			r.Fatal(err)
		}
	})
}

// replay makes the calls and returns how the answers break the promise, if they do.
func replay(ctx context.Context, limit ratelimit.Limit, calls []call) error {
	type admission struct {
		at   time.Time
		cost int
	}
	l, err := ratelimit.New(limit, nil, nil)
	if err != nil {
		return err
	}
	past := make(map[id.User][]admission)
	for _, c := range calls {
		time.Sleep(c.pause)
		if err := l.Allow(ctx, c.user, c.cost); err != nil {
			var refusal *fault.Error
			if !errors.As(err, &refusal) || refusal.RetryAfter <= 0 {
				return err
			}
			if !c.again {
				continue
			}
			time.Sleep(refusal.RetryAfter)
			if err := l.Allow(ctx, c.user, c.cost); err != nil {
				return fmt.Errorf("after waiting %v as told: %w", refusal.RetryAfter, err)
			}
		}
		past[c.user] = append(past[c.user], admission{time.Now(), c.cost})
		sum := 0
		for _, a := range slices.Backward(past[c.user]) {
			sum += a.cost
			window := time.Since(a.at) + time.Microsecond // the clock counts in microseconds
			if most := float64(limit.Burst) + limit.Rate*window.Seconds(); float64(sum) > most {
				return fmt.Errorf("%d admitted within %v, at most %v may be", sum, window, most)
			}
		}
	}
	return nil
}

func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLimiter(t, ratelimit.Limit{Rate: 0.5, Burst: 3}, newFlaky())
		if got := admitted(t.Context(), l, 7, 5); got != 3 {
			t.Errorf("admitted %d at once, want 3", got)
		}
		var refusal *fault.Error
		if !errors.As(l.Allow(t.Context(), 7, 2), &refusal) || refusal.Code != fault.RateLimited || refusal.RetryAfter != 4*time.Second {
			t.Errorf("got %+v, want %s for 4 s", refusal, fault.RateLimited)
		}
		if want := "too many changes: at most 0.5 a second and 3 at once"; refusal.Message != want {
			t.Errorf("got %q, want %q", refusal.Message, want)
		}
		if err := l.Allow(t.Context(), 8, 1); err != nil {
			t.Errorf("somebody else: %v", err)
		}
		if got, want := l.Stats(), (ratelimit.Stats{Refused: 3}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}

		time.Sleep(6 * time.Second)
		if err := l.Allow(t.Context(), 7, 1000); err != nil {
			t.Errorf("a cost above the burst, from a whole allowance: %v", err)
		}
		if got := admitted(t.Context(), l, 7, 1); got != 0 {
			t.Error("a cost above the burst left something")
		}
	})
}

func TestOffAndFree(t *testing.T) {
	off, _ := newLimiter(t, ratelimit.Limit{}, nil)
	if got := admitted(t.Context(), off, 7, 1000); got != 1000 {
		t.Errorf("with no rate set %d of 1000 are admitted", got)
	}
	l, _ := newLimiter(t, ratelimit.Limit{Rate: 1e-4, Burst: 1}, nil)
	for range 10 {
		if err := l.Allow(t.Context(), 7, 0); err != nil {
			t.Errorf("a call that costs nothing: %v", err)
		}
	}
	if got := admitted(t.Context(), l, 7, 10); got != 1 {
		t.Errorf("admitted %d, want 1", got)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		limit ratelimit.Limit
		field string
	}{
		{ratelimit.Limit{Rate: -1, Burst: 1}, "Rate"},
		{ratelimit.Limit{Rate: math.NaN(), Burst: 1}, "Rate"},
		{ratelimit.Limit{Rate: math.Inf(1), Burst: 1}, "Rate"},
		{ratelimit.Limit{Rate: 1}, "Burst"},
		{ratelimit.Limit{Rate: 1, Burst: math.MaxInt}, "Burst"},
		{ratelimit.Limit{Rate: 1e-9, Burst: 1}, "Burst"},
	} {
		if _, err := ratelimit.New(c.limit, nil, nil); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%+v: got %v, want an error about %s", c.limit, err, c.field)
		}
	}
}

func TestStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFlaky()
		l, log := newLimiter(t, ratelimit.Limit{Rate: 1, Burst: 10}, store)
		store.fails.Store(true)

		if got := admitted(t.Context(), l, 7, 100); got != 10 {
			t.Errorf("admitted %d while the store is away, want 10", got)
		}
		if got := store.asked.Load(); got != 1 {
			t.Errorf("a store that failed was asked %d times within a second", got)
		}
		if got := l.Stats().Unshared; got != 100 {
			t.Errorf("%d calls counted as decided alone, want 100", got)
		}

		time.Sleep(time.Second)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { _ = l.Allow(t.Context(), 7, 1) })
		}
		all.Wait()
		if got := store.asked.Load(); got != 2 {
			t.Errorf("50 callers tried the store %d times, want once", got-1)
		}

		store.fails.Store(false)
		time.Sleep(time.Second)
		asked := store.asked.Load()
		if got := admitted(t.Context(), l, 8, 20); got != 10 || store.asked.Load() != asked+20 {
			t.Errorf("admitted %d, asked %d times once the store is back", got, store.asked.Load()-asked)
		}
		if got := strings.Count(log.String(), "level=WARN"); got != 1 || !strings.Contains(log.String(), errAway.Error()) {
			t.Errorf("want one warning with the cause, got %s", log)
		}
		if !strings.Contains(log.String(), "shared by all processes again") {
			t.Errorf("nothing says that the store is back: %s", log)
		}
	})
}

func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFlaky()
		l, _ := newLimiter(t, ratelimit.Limit{Rate: 1, Burst: 10}, store)
		store.hang.Store(true)

		start := time.Now()
		if got := admitted(t.Context(), l, 7, 10); got != 10 {
			t.Errorf("admitted %d, want 10", got)
		}
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("10 calls lost %v to a store that hangs, want 100ms for all", took)
		}
	})
}

func TestCallerWhoIsGoneSaysNothingAboutTheStore(t *testing.T) {
	store := newFlaky()
	l, log := newLimiter(t, ratelimit.Limit{Rate: 1, Burst: 10}, store)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	store.hang.Store(true)
	_ = l.Allow(gone, 7, 1)
	store.hang.Store(false)
	_ = l.Allow(t.Context(), 7, 1)
	if got := store.asked.Load(); got != 2 || log.Len() > 0 {
		t.Errorf("asked %d times, want 2; log: %s", got, log)
	}
}
