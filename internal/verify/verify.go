// Package verify compares what is kept to be quick with the truth.
//
// Badges are made of a few numbers in two rows, which messages keep up to date as they are sent, read and deleted. Package
// verify recounts them from the messages alone, past everything that makes a badge cheap, and also compares what no badge
// shows at the moment, such as the seq of somebody's newest own message, which counts after a mark unread. Projections,
// where there are any, are compared with what Postgres says.
//
// Each comparison is one statement, so it is of one moment, and live traffic is never taken for drift. Nothing is changed,
// except by a run that is to repair.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sync/atomic"

	"tidemark/internal/id"
	"tidemark/internal/progress"
)

const (
	// peopleBatch and channelBatch are how many are compared at a time.
	peopleBatch, channelBatch = 50, 20
	// MaxSample bounds a sample.
	MaxSample = 100_000
	// MaxLines bounds the lines of a report; the numbers are always told.
	MaxLines = 10_000
)

// ErrDrift says that something is not what the messages say.
var ErrDrift = errors.New("what is kept is not what the messages say")

// Store is what is verified. Its errors are faults, or internal.
type Store interface {
	People
	// RandomPeople draws some people, at most so many, each as likely as any other.
	RandomPeople(ctx context.Context, sample int) ([]id.User, error)
	// BadgeDrift recounts the badges of some people, and returns those that are not what the messages say, as far as
	// fewer than countTo messages lie after the cursor, and how many badges were not counted because there are more.
	BadgeDrift(ctx context.Context, users []id.User, countTo int) (drift []Drift, notCounted int, err error)
	// ChannelsOf returns the channels that some people are in.
	ChannelsOf(ctx context.Context, users []id.User) ([]id.Channel, error)
	// ChannelDrift compares all rows that the badges in some channels are made from, and returns those that are not what
	// the messages say. It reads each message.
	ChannelDrift(ctx context.Context, channels []id.Channel) ([]Drift, error)
	// Repair puts all of a channel's rows right in one transaction, while nobody writes to the channel, and returns what
	// they said before. The version of each rises, so whoever holds copies takes the change.
	Repair(ctx context.Context, channel id.Channel) ([]Drift, error)
}

// People lists everybody.
type People interface {
	// CountPeople counts everybody who is known.
	CountPeople(ctx context.Context) (int, error)
	// PeopleAfter returns at most limit people with larger ids than after, in the order of their ids. Somebody who is in no
	// channel any more is among them: people who wrote to them before still count.
	PeopleAfter(ctx context.Context, after id.User, limit int) ([]id.User, error)
}

// Projections are what is kept outside of Postgres about who is newly unread. Their errors are faults, or internal.
type Projections interface {
	// DriftOf compares the projections of some people with what Postgres says, and returns those that are something else.
	// What a message or an acknowledge that is under way will change is none; nor is a projection that is not there.
	DriftOf(ctx context.Context, users []id.User) ([]ProjectionDrift, error)
	// Drop drops the projections of some people, so that the next read makes them anew, and returns how many there were.
	Drop(ctx context.Context, users []id.User) (dropped int, err error)
}

// Drift is a row that is not what the messages say.
type Drift struct {
	UserID      id.User // 0: what is kept is the channel's, not a person's
	ChannelID   id.Channel
	Differences []Difference
}

// Difference is one thing that is kept, or shown, and what the messages say it is.
type Difference struct {
	What          string
	Kept, Counted int64
}

// String tells a drift in a line.
func (d Drift) String() string {
	line := fmt.Sprintf("channel %d", d.ChannelID)
	if d.UserID != 0 {
		line = fmt.Sprintf("person %d in %s", d.UserID, line)
	}
	separator := ": "
	for _, difference := range d.Differences {
		line += fmt.Sprintf("%s%s %d, counted %d", separator, difference.What, difference.Kept, difference.Counted)
		separator = "; "
	}
	return line
}

// ProjectionDrift is a projection that is not what Postgres says.
type ProjectionDrift struct {
	UserID id.User
	// Projected and Counted are what the projection and Postgres say, in words.
	Projected, Counted string
}

// String tells a drift in a line.
func (d ProjectionDrift) String() string {
	return fmt.Sprintf("person %d, newly unread: projected %s, counted %s", d.UserID, d.Projected, d.Counted)
}

// Config says what to verify.
type Config struct {
	Store Store
	// Projections are compared too. Nil: there are none.
	Projections Projections
	// Sample is how many people are drawn. Zero: everybody.
	Sample int
	// Repair puts right what is found: rows in Postgres by the messages, and projections by dropping them.
	Repair bool
	// Progress is shown how far it is. Nil: nothing is shown.
	Progress io.Writer
}

// Report is what was found.
type Report struct {
	People, Channels int
	// Drifted is how many rows and projections were something else, and Repaired how many of them were put right.
	Drifted, Repaired int
	// Lines tell each of both, the first MaxLines of them.
	Lines []string
}

// String sums the report up in a line.
func (r Report) String() string {
	return fmt.Sprintf("%d people in %d channels, %d drifted, %d repaired", r.People, r.Channels, r.Drifted, r.Repaired)
}

// Run compares the badges and projections of everybody, or of a sample, and all rows of each channel that one of them is in.
func Run(ctx context.Context, config Config) (Report, error) {
	if config.Sample < 0 || config.Sample > MaxSample {
		return Report{}, fmt.Errorf("verify: Sample must be from 0 to %d", MaxSample)
	}
	r := run{Config: config, seen: make(map[id.Channel]struct{})}
	if err := r.all(ctx); err != nil {
		return r.report, fmt.Errorf("verify: %w", err)
	}
	return r.report, nil
}

// run is one verification.
type run struct {
	Config
	report Report
	seen   map[id.Channel]struct{} // channels need to be compared once only
}

func (r *run) all(ctx context.Context) error {
	batches, total, err := r.batches(ctx)
	if err != nil {
		return err
	}
	var done atomic.Int64
	defer progress.Show(r.Progress, "verify", total, &done)()
	for users, err := range batches {
		if err != nil {
			return err
		}
		if err := r.compare(ctx, users); err != nil {
			return err
		}
		r.report.People += len(users)
		done.Store(int64(r.report.People))
	}
	return nil
}

// batches returns the people to look at, and how many they are.
func (r *run) batches(ctx context.Context) (batches iter.Seq2[[]id.User, error], total int, err error) {
	if r.Sample == 0 {
		total, err = r.Store.CountPeople(ctx)
		return everybody(ctx, r.Store), total, err
	}
	drawn, err := r.Store.RandomPeople(ctx, r.Sample)
	slices.Sort(drawn)
	return func(yield func([]id.User, error) bool) {
		for users := range slices.Chunk(drawn, peopleBatch) {
			if !yield(users, nil) {
				return
			}
		}
	}, len(drawn), err
}

// everybody lists people in batches, to the end or to an error.
func everybody(ctx context.Context, people People) iter.Seq2[[]id.User, error] {
	return func(yield func([]id.User, error) bool) {
		for after := id.User(0); ; {
			users, err := people.PeopleAfter(ctx, after, peopleBatch)
			if len(users) == 0 && err == nil || !yield(users, err) || err != nil {
				return
			}
			after = users[len(users)-1]
		}
	}
}

// compare looks at some people, and at those of their channels that were not looked at before.
func (r *run) compare(ctx context.Context, users []id.User) error {
	found, _, err := r.Store.BadgeDrift(ctx, users, math.MaxInt64)
	if err != nil {
		return err
	}
	channels, err := r.Store.ChannelsOf(ctx, users)
	if err != nil {
		return err
	}
	channels = slices.DeleteFunc(channels, func(channel id.Channel) bool {
		_, seen := r.seen[channel]
		r.seen[channel] = struct{}{}
		return seen
	})
	r.report.Channels += len(channels)
	for some := range slices.Chunk(channels, channelBatch) {
		drift, err := r.Store.ChannelDrift(ctx, some)
		if err != nil {
			return err
		}
		found = append(found, drift...)
	}
	if err := r.rows(ctx, merge(found)); err != nil || r.Projections == nil {
		return err
	}
	return r.projections(ctx, users)
}

// rows tells of rows that drifted, and repairs their channels.
func (r *run) rows(ctx context.Context, found []Drift) error {
	channels := make([]id.Channel, len(found))
	for i, drift := range found {
		channels[i] = drift.ChannelID
		r.report.Drifted++
		r.tell(drift.String())
	}
	if !r.Repair {
		return nil
	}
	slices.Sort(channels)
	for _, channel := range slices.Compact(channels) {
		repaired, err := r.Store.Repair(ctx, channel)
		if err != nil {
			return fmt.Errorf("repair channel %d: %w", channel, err)
		}
		for _, drift := range merge(repaired) {
			r.report.Repaired++
			r.tell("repaired " + drift.String())
		}
	}
	return nil
}

// projections compares those of some people, and drops those that drifted.
func (r *run) projections(ctx context.Context, users []id.User) error {
	found, err := r.Projections.DriftOf(ctx, users)
	if err != nil {
		return err
	}
	for _, drift := range found {
		r.report.Drifted++
		r.tell(drift.String())
		if !r.Repair {
			continue
		}
		if _, err := r.Projections.Drop(ctx, []id.User{drift.UserID}); err != nil {
			return fmt.Errorf("drop projections of person %d: %w", drift.UserID, err)
		}
		r.report.Repaired++
		r.tell(fmt.Sprintf("repaired person %d, newly unread: dropped, and counted at the next read", drift.UserID))
	}
	return nil
}

func (r *run) tell(line string) {
	if len(r.report.Lines) < MaxLines {
		r.report.Lines = append(r.report.Lines, line)
	}
}

// merge puts what was found in one place together, in the order of people and channels.
func merge(found []Drift) []Drift {
	slices.SortStableFunc(found, func(a, b Drift) int {
		return cmp.Or(cmp.Compare(a.UserID, b.UserID), cmp.Compare(a.ChannelID, b.ChannelID))
	})
	var merged []Drift
	for _, drift := range found {
		last := len(merged) - 1
		if last < 0 || merged[last].UserID != drift.UserID || merged[last].ChannelID != drift.ChannelID {
			merged = append(merged, Drift{UserID: drift.UserID, ChannelID: drift.ChannelID})
			last++
		}
		for _, difference := range drift.Differences {
			if !slices.Contains(merged[last].Differences, difference) {
				merged[last].Differences = append(merged[last].Differences, difference)
			}
		}
	}
	return merged
}
