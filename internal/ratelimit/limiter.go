// Package ratelimit bounds how much one person may change in a given time, whatever processes they talk to.
//
// In any span of t seconds at most Burst + Rate*t is admitted. The allowances are kept in a Store that all processes
// share. While that store is away or slow, each process holds people to the limit by itself: an outage refuses
// nobody and delays next to nobody, but several processes together then admit that many times the limit.
package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"tidemark/internal/breaker"
	"tidemark/internal/fault"
	"tidemark/internal/id"
)

const (
	// storeTimeout is what a call may lose on a store that does not answer.
	storeTimeout = 100 * time.Millisecond
	// storePause is how long a store that failed is left alone. After it one caller tries, for all.
	storePause = time.Second
)

// Store keeps an allowance for each person.
type Store interface {
	// Take takes cost from the person's allowance and returns 0, or takes nothing and returns how long to wait until
	// there is enough. It does so in one step, and by one clock for all who call it. cost is from 1 to limit.Burst.
	Take(ctx context.Context, user id.User, cost int, limit Limit) (wait time.Duration, err error)
}

// Limiter admits or refuses changes. It is safe for concurrent use.
type Limiter struct {
	limit  Limit
	shared Store // nil where every process is on its own
	local  *Memory
	logger *slog.Logger

	breaker *breaker.Breaker

	refused  atomic.Uint64
	unshared atomic.Uint64
}

// New returns a limiter that keeps allowances in shared. Without one (nil) the limit is held by this process alone.
// A nil logger means slog.Default.
func New(limit Limit, shared Store, logger *slog.Logger) (*Limiter, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	return &Limiter{
		limit:   limit,
		shared:  shared,
		local:   NewMemory(),
		logger:  cmp.Or(logger, slog.Default()),
		breaker: breaker.New(storePause),
	}, nil
}

// Allow returns nil where the person may go on, and takes cost from their allowance; else fault.RateLimited, and
// takes nothing. A cost above Limit.Burst counts as Burst, so that no call is refused for ever.
func (l *Limiter) Allow(ctx context.Context, user id.User, cost int) error {
	if l.limit.Rate == 0 || cost < 1 {
		return nil
	}
	wait := l.take(ctx, user, min(cost, l.limit.Burst))
	if wait == 0 {
		return nil
	}
	l.refused.Add(1)
	return &fault.Error{
		Code:       fault.RateLimited,
		Message:    fmt.Sprintf("too many changes: at most %g a second and %d at once", l.limit.Rate, l.limit.Burst),
		RetryAfter: wait,
	}
}

// Stats counts calls of Allow since the start.
type Stats struct {
	Refused  uint64 // answered with fault.RateLimited
	Unshared uint64 // decided by this process alone, because the shared store was away
}

// Stats returns the counts up to now.
func (l *Limiter) Stats() Stats {
	return Stats{Refused: l.refused.Load(), Unshared: l.unshared.Load()}
}

func (l *Limiter) take(ctx context.Context, user id.User, cost int) time.Duration {
	if l.shared == nil {
		return l.local.take(user, cost, l.limit)
	}
	if l.breaker.Allow() {
		wait, err := l.ask(ctx, user, cost)
		if err == nil {
			return wait
		}
	}
	l.unshared.Add(1)
	return l.local.take(user, cost, l.limit)
}

// ask takes from the shared store and remembers whether it works.
func (l *Limiter) ask(ctx context.Context, user id.User, cost int) (time.Duration, error) {
	asking, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	wait, err := l.shared.Take(asking, user, cost, l.limit)
	l.breaker.Heard(ctx, err, l.logger, "rate limits are held by each process alone", "rate limits are shared by all processes again")
	return wait, err
}
