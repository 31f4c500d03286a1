package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
	"tidemark/internal/ratelimit"
)

//go:embed ratelimit.lua
var rateLimitScript string

var _ ratelimit.Store = (*RateLimits)(nil)

// RateLimits keeps people's allowances, by the clock of Redis.
type RateLimits struct {
	rdb  *goredis.Client
	take *goredis.Script
}

// NewRateLimits returns the allowances that are kept behind c.
func NewRateLimits(c *Client) *RateLimits {
	return &RateLimits{rdb: c.rdb, take: goredis.NewScript(rateLimitScript)}
}

// Take is as ratelimit.Store has it. A call that fails may still have taken its cost.
func (r *RateLimits) Take(ctx context.Context, user id.User, cost int, limit ratelimit.Limit) (time.Duration, error) {
	keys := []string{"ratelimit:{" + user.String() + "}"}
	wait, err := r.take.Run(ctx, r.rdb, keys, limit.Interval().Microseconds(), limit.Burst, cost).Int64()
	if err != nil {
		return 0, fmt.Errorf("take from the allowance of %s: %w", user, err)
	}
	return time.Duration(wait) * time.Microsecond, nil
}
