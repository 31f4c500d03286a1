// Package breaker leaves a part alone for a while after it failed, so that nobody waits for what does not answer. When
// the while is over, one caller tries for all.
package breaker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Breaker is safe for concurrent use.
type Breaker struct {
	pause time.Duration
	start time.Time
	until atomic.Int64 // when it may be tried again, in nanoseconds from start; 0 while it works
}

// New returns a breaker of a part that works, and is left alone for pause after each failure.
func New(pause time.Duration) *Breaker {
	return &Breaker{pause: pause, start: time.Now()}
}

// Allow reports whether the part works, or is due to be tried again by the caller.
func (b *Breaker) Allow() bool {
	until, now := b.until.Load(), int64(time.Since(b.start))
	return until == 0 || now >= until && b.until.CompareAndSwap(until, now+int64(b.pause))
}

// Worked notes that the part works. It reports whether it did not before.
func (b *Breaker) Worked() bool {
	return b.until.Load() != 0 && b.until.Swap(0) != 0
}

// Failed notes that the part does not work. It reports whether it did before.
func (b *Breaker) Failed() bool {
	return b.until.Swap(int64(time.Since(b.start)+b.pause)) == 0
}

// Heard notes how a call went, and logs what is news: that the part does not work, with the error, or that it works again.
// A call that failed when its caller's context had ended says nothing of the part.
func (b *Breaker) Heard(ctx context.Context, err error, logger *slog.Logger, away, back string) {
	switch {
	case err == nil:
		if b.Worked() {
			logger.InfoContext(ctx, back)
		}
	case ctx.Err() != nil:
	case b.Failed():
		logger.WarnContext(ctx, away, "error", err)
	}
}
