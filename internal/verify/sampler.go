package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"tidemark/internal/id"
)

const (
	// sampleCountTo is how many messages of a badge a sampler counts. Past 99 a badge shows the same whatever the number
	// is, so there is nothing to win from counting on and on after somebody who left a busy channel unread for months.
	sampleCountTo = 1000
	// personTimeout bounds the look at one person.
	personTimeout = 2 * time.Second
	// maxTold bounds the lines of which a sampler knows that it has logged them.
	maxTold = 1000
)

// SamplerConfig says what a sampler looks at. Zero stands for the defaults named.
type SamplerConfig struct {
	Store Store
	// Projections are compared too. Nil: there are none.
	Projections Projections
	// Every is how often it looks: 1 minute.
	Every time.Duration
	// Sample is how many people it draws each time: 20.
	Sample int
	// Logger: slog.Default.
	Logger *slog.Logger
}

// Sampler compares what some people are shown with the truth, again and again. It is cheap, and leaves out what is not: it
// looks at one person after another, at what their badges say now alone, and counts each badge to sampleCountTo. Run finds
// the rest.
type Sampler struct {
	SamplerConfig
	// Run's alone.
	told    map[string]struct{}
	failing bool

	people, badges, newlyUnread, skipped atomic.Int64
}

// SamplerStats is what a sampler has done since it began.
type SamplerStats struct {
	People      int64 // that were compared
	Badges      int64 // that drifted, each time that one was found
	NewlyUnread int64 // projections that drifted, each time that one was found
	Skipped     int64 // badges with too much to count, and people that took too long
}

// NewSampler returns a sampler. It does nothing before Run.
func NewSampler(config SamplerConfig) *Sampler {
	config.Every = cmp.Or(config.Every, time.Minute)
	config.Sample = cmp.Or(config.Sample, 20)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	return &Sampler{SamplerConfig: config, told: make(map[string]struct{})}
}

// Stats tells what it has done.
func (s *Sampler) Stats() SamplerStats {
	return SamplerStats{
		People: s.people.Load(), Badges: s.badges.Load(), NewlyUnread: s.newlyUnread.Load(), Skipped: s.skipped.Load(),
	}
}

// Run looks until ctx ends.
func (s *Sampler) Run(ctx context.Context) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := s.look(ctx)
		if err != nil && !s.failing && ctx.Err() == nil {
			s.Logger.Warn("nobody can be verified for now", "error", err)
		}
		s.failing = err != nil
	}
}

// look draws some people, and compares them one by one, so that one who takes long costs the others nothing.
func (s *Sampler) look(ctx context.Context) error {
	drawing, cancel := context.WithTimeout(ctx, personTimeout)
	users, err := s.Store.RandomPeople(drawing, s.Sample)
	cancel()
	if err != nil {
		return err
	}
	for _, user := range users {
		looking, cancel := context.WithTimeout(ctx, personTimeout)
		err := s.verify(looking, user)
		tookLong := errors.Is(looking.Err(), context.DeadlineExceeded)
		cancel()
		switch {
		case err == nil:
			s.people.Add(1)
		case tookLong && ctx.Err() == nil:
			s.skipped.Add(1)
		default:
			return err
		}
	}
	return nil
}

func (s *Sampler) verify(ctx context.Context, user id.User) error {
	users := []id.User{user}
	badges, notCounted, err := s.Store.BadgeDrift(ctx, users, sampleCountTo)
	if err != nil {
		return err
	}
	s.skipped.Add(int64(notCounted))
	for _, drift := range badges {
		s.badges.Add(1)
		s.tell("a badge is not what the messages say", drift)
	}
	if s.Projections == nil {
		return nil
	}
	projections, err := s.Projections.DriftOf(ctx, users)
	if err != nil {
		return nil //nolint:nilerr // what cannot be read is shown to nobody
	}
	for _, drift := range projections {
		s.newlyUnread.Add(1)
		s.tell("newly unread is not what Postgres says", drift)
	}
	return nil
}

// tell logs a drift, once however often it is found.
func (s *Sampler) tell(what string, drift fmt.Stringer) {
	line := drift.String()
	if _, told := s.told[line]; told {
		return
	}
	if len(s.told) >= maxTold {
		clear(s.told)
	}
	s.told[line] = struct{}{}
	s.Logger.Error(what, "drift", line)
}
