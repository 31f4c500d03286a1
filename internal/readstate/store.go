package readstate

import (
	"context"

	"tidemark/internal/id"
)

// Store keeps cursors. Each method is one atomic step; its errors are faults, or internal.
type Store interface {
	// Badges returns all badges of a person, newest activity first, with the store epoch they were read in. All are
	// of one moment. Counts are exact up to limit.
	Badges(ctx context.Context, user id.User, limit int) (badges []Badge, storeEpoch string, err error)
	// BadgesOf returns the badges of some seats, in no particular order, without those that are taken by no member.
	BadgesOf(ctx context.Context, seats []Seat, limit int) ([]Badge, error)
	// Advance moves cursors forward in the order given, none past its channel's head, and none back: all of them or, on
	// an error, none. One that is there already, one of an older epoch than the stored, and one in a channel that the
	// person is not in stays, and nothing is written for it.
	Advance(ctx context.Context, user id.User, device id.Device, cursors []Cursor) ([]Move, error)
	// Retreat moves a cursor back to before seq, not past joining and never forward, and begins a new epoch. done is
	// false, and nothing is written, where the epoch is older than the stored one or the person is not in the channel.
	Retreat(ctx context.Context, user id.User, channel id.Channel, seq id.Seq, epoch *int) (moved, done bool, err error)
	// SetMuted mutes or unmutes. Where it is so already, or the person is not in the channel, nothing is written.
	SetMuted(ctx context.Context, user id.User, channel id.Channel, muted bool) error
}

// Seat is a person's place in a channel, whether they are in it or not.
type Seat struct {
	UserID    id.User
	ChannelID id.Channel
}

// Move is what became of one cursor: whether it moved, and where the channel's newest message was then.
type Move struct {
	Moved        bool
	HighWaterSeq id.Seq
}
