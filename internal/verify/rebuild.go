package verify

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"tidemark/internal/id"
	"tidemark/internal/progress"
)

// RebuildConfig says whose projections to drop.
type RebuildConfig struct {
	People      People
	Projections Projections
	// User is whose. Zero: everybody's.
	User id.User
	// Progress is shown how far it is. Nil: nothing is shown.
	Progress io.Writer
}

// Rebuilt is what was dropped.
type Rebuilt struct{ People, Dropped int }

// String sums it up in a line.
func (r Rebuilt) String() string {
	return fmt.Sprintf("%d people, %d copies dropped: each is made anew when it is read next", r.People, r.Dropped)
}

// Rebuild drops projections, of one person or everybody's, so that the next read makes them anew from Postgres. Nothing
// shown is wrong meanwhile: what is not there is counted in Postgres.
func Rebuild(ctx context.Context, config RebuildConfig) (done Rebuilt, err error) {
	if config.User != 0 {
		dropped, err := config.Projections.Drop(ctx, []id.User{config.User})
		if err != nil {
			return done, fmt.Errorf("rebuild: %w", err)
		}
		return Rebuilt{People: 1, Dropped: dropped}, nil
	}
	total, err := config.People.CountPeople(ctx)
	if err != nil {
		return done, fmt.Errorf("rebuild: %w", err)
	}
	var people atomic.Int64
	defer progress.Show(config.Progress, "rebuild", total, &people)()
	for users, err := range everybody(ctx, config.People) {
		if err != nil {
			return done, fmt.Errorf("rebuild: %w", err)
		}
		dropped, err := config.Projections.Drop(ctx, users)
		if err != nil {
			return done, fmt.Errorf("rebuild: %w", err)
		}
		done.People += len(users)
		done.Dropped += dropped
		people.Store(int64(done.People))
	}
	return done, nil
}
