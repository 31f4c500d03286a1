package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/newlyunread"
	"tidemark/internal/wait"
)

const (
	// tokenFor is how long a token stays, which is of use for a moment.
	tokenFor = time.Minute
	// A replica that has not come to a token yet is asked once more, after a moment.
	checkTries = 2
	checkPause = time.Millisecond
)

var _ newlyunread.Check = (*NewlyUnreadCheck)(nil)

// NewlyUnreadCheck knows from a replica which changes are redundant. The replica may be late, paused, cut off or another
// server's: each time it has to show a token that was written to the primary after the changes were stored. No clock is
// asked.
type NewlyUnreadCheck struct {
	primary, replica *goredis.Client
}

// NewNewlyUnreadCheck returns what is asked of a replica of primary.
func NewNewlyUnreadCheck(primary, replica *Client) *NewlyUnreadCheck {
	return &NewlyUnreadCheck{primary: primary.single, replica: replica.single}
}

// Redundant implements newlyunread.Check.
func (c *NewlyUnreadCheck) Redundant(ctx context.Context, p newlyunread.Partition, changes []newlyunread.Change, recency time.Duration) ([]newlyunread.Change, bool, error) {
	token, key := rand.Text(), "newly_unread_token:{"+strconv.Itoa(int(p))+"}"
	if err := c.primary.Set(ctx, key, token, tokenFor).Err(); err != nil {
		return changes, false, fmt.Errorf("write a token: %w", err)
	}
	for try := range checkTries {
		if try > 0 && !wait.For(ctx, checkPause) {
			break
		}
		pipe := c.replica.Pipeline()
		shown := pipe.Get(ctx, key)
		tops := make([]*goredis.StringSliceCmd, len(changes))
		scores := make([]*goredis.FloatSliceCmd, len(changes))
		for i, change := range changes {
			tops[i] = pipe.ZRevRange(ctx, newlyUnreadKey(change.User), 0, 0)
			if len(change.Arrived) > 0 {
				scores[i] = pipe.ZMScore(ctx, newlyUnreadKey(change.User), senders(change)...)
			}
		}
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
			return changes, false, fmt.Errorf("ask the replica: %w", err)
		}
		if shown.Val() != token {
			continue
		}
		var needed []newlyunread.Change
		for i, change := range changes {
			if scores[i] != nil {
				change.Arrived = missing(change, tops[i].Val(), scores[i].Val(), recency)
			}
			if len(change.Arrived) > 0 || change.Acknowledged > 0 {
				needed = append(needed, change)
			}
		}
		return needed, true, nil
	}
	return changes, false, nil
}

func senders(change newlyunread.Change) []string {
	names := make([]string, len(change.Arrived))
	for i, a := range change.Arrived {
		names[i] = a.Sender.String()
	}
	return names
}

// missing returns what a set with that top lacks, or has only of long before. Only a copy that is there saves a write:
//
//   - one that is not there may be there on the primary, because a replica hides what is past its time by its own clock;
//   - what is in one that is being made may not stay, because it is not known yet up to where all was acknowledged.
func missing(change newlyunread.Change, top []string, scores []float64, recency time.Duration) []newlyunread.Arrival {
	if len(top) == 0 || !strings.HasPrefix(top[0], "warm:") {
		return change.Arrived
	}
	var left []newlyunread.Arrival
	for i, a := range change.Arrived {
		if at := newlyunread.Position(scores[i]); at == 0 || a.Position.Time().Sub(at.Time()) >= recency {
			left = append(left, a)
		}
	}
	return left
}
