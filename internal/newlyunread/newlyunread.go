package newlyunread

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
	"tidemark/internal/readstate"
)

const (
	// DefaultMaxMembers is the largest group in which every message counts.
	DefaultMaxMembers = 100
	// DefaultFirst is how many senders are listed where nobody says how many.
	DefaultFirst = 10
	// MaxFirst bounds the senders of a list.
	MaxFirst = 500
)

// Position is how far a person has been shown who wrote to them. Positions of one person order what came; they are about
// microseconds, and no more than about.
type Position int64

// Time is about when it was.
func (p Position) Time() time.Time { return time.UnixMicro(int64(p)).UTC() }

// Sender is somebody who wrote since the acknowledge.
type Sender struct {
	UserID id.User
	// LatestAt is about when they wrote last.
	LatestAt time.Time
}

// Shown is what the messages icon shows, and up to which position that is all.
type Shown struct {
	Number         readstate.Count // to readstate.DefaultCap
	Senders        []Sender        // newest first
	AsOf           Position
	AcknowledgedAt *time.Time
}

// Count is how many different people wrote, readstate.DefaultCap at most.
func (s Shown) Count() int { return s.Number.Count }

// Capped reports whether there are more.
func (s Shown) Capped() bool { return s.Number.Capped }

// Label is what to draw.
func (s Shown) Label() string { return s.Number.Label() }

// Store keeps arrivals. Its errors are faults, or internal.
type Store interface {
	// NewlyUnread returns at most limit senders since a person's acknowledge.
	NewlyUnread(ctx context.Context, user id.User, limit int) (Snapshot, error)
	// Acknowledge moves the acknowledge forward, to asOf (nil: the newest position) or to the newest that was given out
	// where that is nearer, and never back.
	Acknowledge(ctx context.Context, user id.User, asOf *Position) error
}

// Config says what answers are made of.
type Config struct {
	Store Store
	// Projection is read before the store is. Nil: the store is read each time.
	Projection Projection
	// Announcer hears of each acknowledge. Nil: nobody does.
	Announcer Announcer
	// Logger: slog.Default.
	Logger *slog.Logger
}

// NewlyUnread answers for who wrote to people.
type NewlyUnread struct {
	Config
	breaker *breaker.Breaker
	store   atomic.Pointer[string] // the epoch of the store that was read last: others' copies are of no use
	lasting lasting

	warm, cold, away atomic.Int64
}

// New returns what config describes.
func New(config Config) *NewlyUnread {
	config.Logger = cmp.Or(config.Logger, slog.Default())
	return &NewlyUnread{Config: config, breaker: breaker.New(projectionPause)}
}

// Get returns who wrote to a person since they acknowledged, the first senders of them.
func (n *NewlyUnread) Get(ctx context.Context, user id.User, first int) (Shown, error) {
	if err := fault.CheckRange("first", first, 1, MaxFirst); err != nil {
		return Shown{}, err
	}
	s, err := n.snapshot(ctx, user, max(first, readstate.DefaultCap+1))
	if err != nil {
		return Shown{}, fmt.Errorf("newly unread: %w", err)
	}
	return Shown{
		Number:         readstate.CountTo(len(s.Senders), readstate.DefaultCap),
		Senders:        s.Senders[:min(first, len(s.Senders))],
		AsOf:           s.AsOf,
		AcknowledgedAt: s.AcknowledgedAt,
	}, nil
}

// Acknowledge notes that a person was shown who wrote up to asOf, and everything up to now where it is nil.
func (n *NewlyUnread) Acknowledge(ctx context.Context, user id.User, asOf *Position, first int) (Shown, error) {
	if err := fault.CheckRange("first", first, 1, MaxFirst); err != nil {
		return Shown{}, err
	}
	if err := n.Seen(ctx, user, asOf); err != nil {
		return Shown{}, err
	}
	return n.Get(ctx, user, first)
}

// Seen notes the same, and answers nothing.
func (n *NewlyUnread) Seen(ctx context.Context, user id.User, asOf *Position) error {
	if err := n.Store.Acknowledge(ctx, user, asOf); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	if n.Projection != nil && (!n.breaker.Allow() || !n.drop(ctx, user)) {
		n.lasting.add(user)
	}
	if n.Announcer != nil {
		n.Announcer.NewlyUnreadChanged([]id.User{user})
	}
	return nil
}

// drop drops a copy, and reports whether that was done. It has to go although it may lack nothing up to what was
// acknowledged: a later message may be missing from it because the one before was recent. A worker drops it too, a moment
// later.
func (n *NewlyUnread) drop(ctx context.Context, user id.User) bool {
	dropping, cancel := context.WithTimeout(ctx, projectionTimeout)
	defer cancel()
	_, err := n.Projection.Drop(dropping, []id.User{user})
	n.heard(ctx, err)
	return err == nil
}

// snapshot reads the copy, or where there is none the store.
func (n *NewlyUnread) snapshot(ctx context.Context, user id.User, limit int) (Snapshot, error) {
	if n.Projection == nil || limit > MaxKept {
		return n.read(ctx, user, limit)
	}
	if !n.breaker.Allow() {
		n.away.Add(1)
		return n.read(ctx, user, limit)
	}
	if when := n.lasting.when(user); when > 0 {
		if !n.drop(ctx, user) {
			n.away.Add(1)
			return n.read(ctx, user, limit)
		}
		n.lasting.remove(user, when)
	}
	store := ""
	if known := n.store.Load(); known != nil {
		store = *known
	}
	reading, cancel := context.WithTimeout(ctx, projectionTimeout)
	s, kept, err := n.Projection.Read(reading, store, user, limit)
	cancel()
	n.heard(ctx, err)
	switch {
	case err != nil:
		n.away.Add(1)
		return n.read(ctx, user, limit)
	case kept == Warm:
		n.warm.Add(1)
		return s, nil
	}
	n.cold.Add(1)
	if kept == Unattended {
		return n.read(ctx, user, limit)
	}
	return n.fill(ctx, user, limit)
}

// read reads the store.
func (n *NewlyUnread) read(ctx context.Context, user id.User, limit int) (Snapshot, error) {
	s, err := n.Store.NewlyUnread(ctx, user, limit)
	if known := n.store.Load(); err == nil && (known == nil || *known != s.Generation.Store) {
		n.store.Store(&s.Generation.Store)
	}
	return s, err
}

// fill reads the store, and makes a copy of what it says. Nobody is to suffer where that fails: a projection that takes
// nothing more may still be read.
func (n *NewlyUnread) fill(ctx context.Context, user id.User, limit int) (Snapshot, error) {
	beginning, cancel := context.WithTimeout(ctx, projectionTimeout)
	note, noted := n.Projection.Begin(beginning, user)
	cancel()
	s, err := n.read(ctx, user, MaxKept)
	if err != nil {
		return Snapshot{}, err
	}
	if noted == nil {
		finishing, cancel := context.WithTimeout(ctx, projectionTimeout)
		defer cancel()
		_ = n.Projection.Finish(finishing, user, note, s)
	}
	s.Senders = s.Senders[:min(limit, len(s.Senders))]
	return s, nil
}

// heard remembers whether the projection works.
func (n *NewlyUnread) heard(ctx context.Context, err error) {
	n.breaker.Heard(ctx, err, n.Logger, "newly unread is read from the store alone", "newly unread is read from its copies again")
}

// Stats is how reads were answered since the start, of those that a copy could answer.
type Stats struct {
	Warm int64 // from a copy
	Cold int64 // from the store, because there was no copy to trust
	Away int64 // from the store, because the projection is away
}

// Stats tells how reads were answered.
func (n *NewlyUnread) Stats() Stats {
	return Stats{Warm: n.warm.Load(), Cold: n.cold.Load(), Away: n.away.Load()}
}
