// Package wait waits.
package wait

import (
	"context"
	"time"
)

// For waits until the time is over, or ctx. It reports whether the time is.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
