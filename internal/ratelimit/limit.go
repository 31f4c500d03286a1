package ratelimit

import (
	"errors"
	"math"
	"time"
)

// Limit is an allowance that fills up again at a steady rate.
type Limit struct {
	// Rate is how much a person may do in a second in the long run. Zero: as much as they like.
	Rate float64
	// Burst is how much they may do at once after a pause. At least 1.
	Burst int
}

// longestRefill bounds the time that an empty allowance takes to be whole again.
const longestRefill = 24 * time.Hour

// Validate names the field that is not what it may be.
func (l Limit) Validate() error {
	switch {
	case l.Rate == 0:
		return nil
	case !(l.Rate > 0 && l.Rate <= 1e6): // written so that NaN fails
		return errors.New("rate limit: Rate must be from 0 to a million a second")
	case l.Burst < 1 || float64(l.Burst)/l.Rate > longestRefill.Seconds():
		return errors.New("rate limit: Burst must be at least 1, and no more than Rate allows in a day")
	}
	return nil
}

// Interval is how long the allowance takes to grow by one. It is rounded up to whole microseconds, which is what
// Redis's clock counts in, so that the rate is never exceeded.
func (l Limit) Interval() time.Duration {
	return time.Duration(math.Ceil(1e6/l.Rate)) * time.Microsecond
}
