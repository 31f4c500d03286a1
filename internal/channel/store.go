package channel

import (
	"context"
	"errors"

	"tidemark/internal/id"
	"tidemark/internal/person"
)

// ErrClientMessageIDUsed says that the sender has a message of that name in that channel. Nothing was written.
var ErrClientMessageIDUsed = errors.New("client message id is used")

// Store keeps channels. Its errors are faults, or internal.
type Store interface {
	// CreateChannel makes a channel and its members in one step, or nothing of it. An id that is taken is CONFLICT. A
	// pair that has its direct channel already gets that one's id.
	CreateChannel(ctx context.Context, channel New) (id.Channel, error)
	// Channels returns those of the channels that the person is in, as they see them.
	Channels(ctx context.Context, user id.User, channels []id.Channel) ([]Channel, error)
	// Channel returns a channel to somebody who need not be in it, from its first message on.
	Channel(ctx context.Context, channel id.Channel) (Channel, error)
	// Members returns at most limit members with larger ids than after, in the order of their ids.
	Members(ctx context.Context, channel id.Channel, after id.User, limit int) ([]person.Person, error)
	// Send writes a message and its sender's cursor in one step. It is NOT_FOUND where the sender is not in the
	// channel, and ErrClientMessageIDUsed where a message of that name is there. The mentions are distinct and do not
	// hold the sender.
	Send(ctx context.Context, sender id.User, draft Draft) (Sent, error)
	// MessageByClientID returns what an earlier send of that name wrote.
	MessageByClientID(ctx context.Context, sender id.User, channel id.Channel, clientID string) (Message, error)
	// MessagesBefore returns the newest messages with after < seq < before, oldest first.
	MessagesBefore(ctx context.Context, channel id.Channel, after, before id.Seq, limit int) ([]Message, error)
	// LockHead runs change while every other writer of the channel waits, and commits what it did, or nothing where it
	// returns an error. A channel that does not exist is NOT_FOUND.
	LockHead(ctx context.Context, channel id.Channel, change func(Head) error) error
}

// Head is a channel whose other writers wait. It must not be used after the function it was handed to has returned.
type Head interface {
	Info() HeadInfo
	// Joined returns the seq after which a member may see messages.
	Joined(ctx context.Context, user id.User) (after id.Seq, member bool, err error)
	// Join makes those of the people members who are not, with their cursor at the head. They come in ascending order.
	Join(ctx context.Context, users []id.User) (Change, error)
	// Leave ends a membership, if there is one.
	Leave(ctx context.Context, user id.User) (Change, error)
	// Message returns one message, and NOT_FOUND where the channel has none at seq.
	Message(ctx context.Context, seq id.Seq) (Message, error)
	// Delete takes a message's words and mentions away and returns the head's version since, or 0 where it was deleted
	// before.
	Delete(ctx context.Context, seq id.Seq) (version id.Seq, err error)
}

// HeadInfo is what does not change about a channel.
type HeadInfo struct {
	Kind      Kind
	CreatorID id.User // 0 where a service made it
}
