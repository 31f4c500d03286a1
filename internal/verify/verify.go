// Package verify recounts people's badges message by message, past everything that makes a badge cheap, and tells where
// the rows that badges are made from say something else. It changes nothing.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"tidemark/internal/id"
)

const (
	// batch is how many people are recounted at a time.
	batch = 50
	// MaxSample bounds a sample.
	MaxSample = 100_000
)

// Drift is a badge that is not what the messages say.
type Drift struct {
	UserID                    id.User
	ChannelID                 id.Channel
	HighWaterSeq, NewestSeq   id.Seq // the head, and the newest message
	LastReadSeq               id.Seq
	Unread, CountedUnread     int
	Mentions, CountedMentions int
}

// String tells a drift in a line.
func (d Drift) String() string {
	return fmt.Sprintf("person %d in channel %d: head %d, newest message %d, cursor %d, unread %d, counted %d, mentions %d, counted %d",
		d.UserID, d.ChannelID, d.HighWaterSeq, d.NewestSeq, d.LastReadSeq, d.Unread, d.CountedUnread, d.Mentions, d.CountedMentions)
}

// Store is what is verified. Its errors are faults, or internal.
type Store interface {
	// Readers returns at most limit people who are in some channel, with larger ids than after, in the order of their ids.
	Readers(ctx context.Context, after id.User, limit int) ([]id.User, error)
	// RandomReaders returns some of them at random, at most so many.
	RandomReaders(ctx context.Context, sample int) ([]id.User, error)
	// Drift recounts the badges of some people, and returns those that are not what the messages say.
	Drift(ctx context.Context, users []id.User) ([]Drift, error)
}

// Config says whom to verify.
type Config struct {
	Store Store
	// Sample is how many people are drawn. Zero: everybody.
	Sample int
	// Progress is told how many were verified, if it is not nil.
	Progress io.Writer
}

// Report is what was found.
type Report struct {
	People int
	Drift  []Drift
}

// String sums the report up in a line.
func (r Report) String() string {
	return fmt.Sprintf("%d people, %d badges drifted", r.People, len(r.Drift))
}

// Run verifies.
func Run(ctx context.Context, config Config) (Report, error) {
	if config.Sample < 0 || config.Sample > MaxSample {
		return Report{}, fmt.Errorf("verify: Sample must be from 0 to %d", MaxSample)
	}
	if config.Progress != nil {
		defer func() { _, _ = io.WriteString(config.Progress, "\n") }()
	}
	var report Report
	if config.Sample > 0 {
		users, err := config.Store.RandomReaders(ctx, config.Sample)
		if err != nil {
			return report, fmt.Errorf("verify: %w", err)
		}
		for some := range slices.Chunk(users, batch) {
			if err := report.add(ctx, config, some); err != nil {
				return report, err
			}
		}
		return report, nil
	}
	for after := id.User(0); ; {
		users, err := config.Store.Readers(ctx, after, batch)
		if err != nil {
			return report, fmt.Errorf("verify: %w", err)
		}
		if len(users) == 0 {
			return report, nil
		}
		if err := report.add(ctx, config, users); err != nil {
			return report, err
		}
		after = users[len(users)-1]
	}
}

func (r *Report) add(ctx context.Context, config Config, users []id.User) error {
	found, err := config.Store.Drift(ctx, users)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	r.People += len(users)
	r.Drift = append(r.Drift, found...)
	if config.Progress != nil {
		_, _ = fmt.Fprintf(config.Progress, "\r%d people verified, %d badges drifted", r.People, len(r.Drift)) // it is for show
	}
	return nil
}

// ErrDrift says that badges are not what the messages say.
var ErrDrift = errors.New("badges are not what the messages say")
