package redis_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/ratelimit"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

// TestScriptDecidesAsMemoryDoes runs drawn histories through the script and through ratelimit.Memory, which has its
// own proof, on one clock. They must give the same answers to the microsecond.
func TestScriptDecidesAsMemoryDoes(t *testing.T) {
	type call struct {
		pause time.Duration
		user  id.User
		cost  int
	}
	rapid.Check(t, func(r *rapid.T) {
		limit := ratelimit.Limit{
			Rate:  rapid.Float64Range(0.01, 1e4).Draw(r, "rate"),
			Burst: rapid.IntRange(1, 50).Draw(r, "burst"),
		}
		refill := limit.Interval() * time.Duration(limit.Burst)
		calls := rapid.SliceOf(rapid.Custom(func(r *rapid.T) call {
			return call{
				pause: time.Duration(rapid.Int64Range(0, int64(refill)).Draw(r, "pause")),
				user:  id.User(rapid.Int64Range(1<<62, 1<<62+1).Draw(r, "user")),
				cost:  rapid.IntRange(1, limit.Burst).Draw(r, "cost"),
			}
		})).Draw(r, "calls")

		var broken error
		synctest.Test(t, func(t *testing.T) {
			limits, memory := redis.NewRateLimits(newMiniredis(t)), ratelimit.NewMemory()
			for _, c := range calls {
				time.Sleep(c.pause)
				got, err := limits.Take(t.Context(), c.user, c.cost, limit)
				want, _ := memory.Take(t.Context(), c.user, c.cost, limit)
				if err != nil || got != want {
					broken = fmt.Errorf("%+v: got %v, %w, want %v", c, got, err, want)
					return
				}
			}
		})
		if broken != nil {
			r.Fatal(broken)
		}
	})
}

// newMiniredis returns a client of a Redis that lives in the test's synctest bubble and keeps its time.
func newMiniredis(t *testing.T) *redis.Client {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true)
	t.Cleanup(server.Close)
	client := redis.NewClient(&goredis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestNeverMoreThanTheLimit lets many callers take at once from a real Redis, by its own clock. Between the start of
// one call and the end of another no more than Burst + Rate*t of all that lie within may be admitted.
func TestNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	limits, _ := open(t)
	limit := ratelimit.Limit{Rate: 200, Burst: 20}
	type admission struct{ start, end time.Duration }
	var (
		mu       sync.Mutex
		admitted []admission
		callers  sync.WaitGroup
		begin    = time.Now()
	)
	for range 8 {
		callers.Go(func() {
			for time.Since(begin) < 400*time.Millisecond {
				start := time.Since(begin)
				wait, err := limits.Take(t.Context(), 7, 1, limit)
				if err != nil {
					t.Error(err)
					return
				}
				if wait == 0 {
					mu.Lock()
					admitted = append(admitted, admission{start, time.Since(begin)})
					mu.Unlock()
				}
			}
		})
	}
	callers.Wait()
	for _, from := range admitted {
		for _, to := range admitted {
			n := 0
			for _, a := range admitted {
				if a.start >= from.start && a.end <= to.end {
					n++
				}
			}
			if most := float64(limit.Burst) + limit.Rate*(to.end-from.start).Seconds(); float64(n) > max(most, 0) {
				t.Fatalf("%d admitted between %v and %v, at most %v may be", n, from.start, to.end, most)
			}
		}
	}
	if len(admitted) < limit.Burst {
		t.Errorf("only %d admitted", len(admitted))
	}
}

func TestAllowanceExpiresWhenItIsWhole(t *testing.T) {
	t.Parallel()
	limits, server := open(t)
	raw := rawClient(t, server)
	wait, err := limits.Take(t.Context(), 7, 3, ratelimit.Limit{Rate: 0.1, Burst: 5})
	if err != nil || wait != 0 {
		t.Fatalf("got %v, %v", wait, err)
	}
	left, err := raw.PTTL(t.Context(), "ratelimit:{7}").Result()
	if err != nil || left > 30*time.Second || left < 25*time.Second {
		t.Errorf("the key lives for %v, %v, want the 30s that 3 take to come back", left, err)
	}
	if n := raw.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

func TestLowerLimitHoldsAtOnce(t *testing.T) {
	t.Parallel()
	limits, _ := open(t)
	if _, err := limits.Take(t.Context(), 7, 1000, ratelimit.Limit{Rate: 0.1, Burst: 1000}); err != nil {
		t.Fatal(err)
	}
	wait, err := limits.Take(t.Context(), 7, 1, ratelimit.Limit{Rate: 0.1, Burst: 2})
	if err != nil || wait <= 0 || wait > 10*time.Second {
		t.Errorf("to wait %v, %v, want no longer than 10s: one more by the limit of now", wait, err)
	}
}

func TestScriptSurvivesRestart(t *testing.T) {
	t.Parallel()
	limits, server := open(t)
	limit := ratelimit.Limit{Rate: 0.01, Burst: 1}
	take := func() time.Duration {
		t.Helper()
		wait, err := limits.Take(t.Context(), 7, 1, limit)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	take()
	if take() == 0 {
		t.Error("the allowance of 1 gave 2")
	}
	server.Kill()
	server.Start()
	if take() != 0 {
		t.Error("a Redis that came back empty refuses")
	}
	if err := rawClient(t, server).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if take() == 0 {
		t.Error("after SCRIPT FLUSH the allowance of 1 gave 2")
	}
}

func TestLimiterOutlivesRedis(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(*redistest.Server){
		"killed": (*redistest.Server).Kill,
		"paused": (*redistest.Server).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits, server := open(t)
			limiter, err := ratelimit.New(ratelimit.Limit{Rate: 0.01, Burst: 5}, limits, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := limiter.Allow(t.Context(), 7, 5); err != nil {
				t.Fatal(err)
			}
			if err := limiter.Allow(t.Context(), 7, 1); fault.CodeOf(err) != fault.RateLimited {
				t.Fatalf("got %v, want %s", err, fault.RateLimited)
			}

			outage(server)
			start := time.Now()
			for range 5 {
				if err := limiter.Allow(t.Context(), 8, 1); err != nil {
					t.Error(err)
				}
			}
			if err := limiter.Allow(t.Context(), 8, 1); fault.CodeOf(err) != fault.RateLimited {
				t.Errorf("got %v, want %s also without Redis", err, fault.RateLimited)
			}
			if took := time.Since(start); took > 800*time.Millisecond {
				t.Errorf("6 calls took %v", took)
			}
			if got := limiter.Stats().Unshared; got != 6 {
				t.Errorf("%d calls decided without Redis, want 6", got)
			}
		})
	}
}
