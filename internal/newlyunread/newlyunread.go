package newlyunread

import (
	"context"
	"fmt"
	"time"

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
	// NewlyUnread returns at most limit senders since a person's acknowledge, newest first, with the position up to which
	// they are all, of one moment.
	NewlyUnread(ctx context.Context, user id.User, limit int) (senders []Sender, asOf Position, acknowledgedAt *time.Time, err error)
	// Acknowledge moves the acknowledge forward, to asOf (nil: the newest position) or to the newest that was given out
	// where that is nearer, and never back.
	Acknowledge(ctx context.Context, user id.User, asOf *Position) error
}

// NewlyUnread answers for who wrote to people.
type NewlyUnread struct {
	store     Store
	announcer Announcer
}

// New returns what is kept in store. The announcer hears of each acknowledge; nil: nobody does.
func New(store Store, announcer Announcer) *NewlyUnread {
	return &NewlyUnread{store: store, announcer: announcer}
}

// Get returns who wrote to a person since they acknowledged, the first senders of them.
func (n *NewlyUnread) Get(ctx context.Context, user id.User, first int) (Shown, error) {
	if err := fault.CheckRange("first", first, 1, MaxFirst); err != nil {
		return Shown{}, err
	}
	senders, asOf, acknowledgedAt, err := n.store.NewlyUnread(ctx, user, max(first, readstate.DefaultCap+1))
	if err != nil {
		return Shown{}, fmt.Errorf("newly unread: %w", err)
	}
	return Shown{
		Number:         readstate.CountTo(len(senders), readstate.DefaultCap),
		Senders:        senders[:min(first, len(senders))],
		AsOf:           asOf,
		AcknowledgedAt: acknowledgedAt,
	}, nil
}

// Acknowledge notes that a person was shown who wrote up to asOf, and everything up to now where it is nil.
func (n *NewlyUnread) Acknowledge(ctx context.Context, user id.User, asOf *Position, first int) (Shown, error) {
	if err := fault.CheckRange("first", first, 1, MaxFirst); err != nil {
		return Shown{}, err
	}
	if err := n.store.Acknowledge(ctx, user, asOf); err != nil {
		return Shown{}, fmt.Errorf("acknowledge: %w", err)
	}
	if n.announcer != nil {
		n.announcer.NewlyUnreadChanged([]id.User{user})
	}
	return n.Get(ctx, user, first)
}
