package channel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// Message is a message. What remains of a deleted one has its place, its sender and its time, and no words.
type Message struct {
	ID        id.Message
	ChannelID id.Channel
	Seq       id.Seq
	Sender    person.Person
	Body      string
	CreatedAt time.Time
	Deleted   bool
	// ClientMessageID is the sender's name for it. Only the sender is shown it.
	ClientMessageID *string
	// MentionsViewer is whether it names whoever it is shown to.
	MentionsViewer   bool
	Mentions         []id.User
	MentionsEveryone bool
}

// For returns the message as one person sees it.
func (m Message) For(viewer id.User) Message {
	if m.Sender.ID == viewer {
		return m
	}
	m.ClientMessageID = nil
	m.MentionsViewer = m.MentionsEveryone || slices.Contains(m.Mentions, viewer)
	return m
}

// Draft is a message to be sent.
type Draft struct {
	ChannelID id.Channel
	Body      string
	// ClientMessageID makes a retry return the first message again. Empty makes each call a message of its own.
	ClientMessageID  string
	Mentions         []id.User
	MentionsEveryone bool
}

// Sent is what a send did.
type Sent struct {
	Message Message
	// Badge is the sender's own of this moment: of a first send, read up to the message.
	Badge readstate.Badge
	// Duplicate says that the message was there from an earlier try.
	Duplicate bool
}

// Badges looks up a badge after the fact.
type Badges interface {
	Badge(ctx context.Context, user id.User, channel id.Channel, limit int) (readstate.Badge, error)
}

// Send writes a message and marks its sender read up to it. With a ClientMessageID that the sender used in this
// channel before, it returns that message, or CONFLICT where the body is another one. To mention somebody who is not in
// the channel does nothing. The work is the same for a channel of any size.
func (c *Channels) Send(ctx context.Context, viewer person.Viewer, draft Draft, limit int) (Sent, error) {
	if err := readstate.CheckCap(limit); err != nil {
		return Sent{}, err
	}
	if err := draft.check(); err != nil {
		return Sent{}, err
	}
	draft.Mentions = slices.DeleteFunc(distinct(draft.Mentions), func(u id.User) bool { return u == viewer.ID })
	sent, err := c.store.Send(ctx, viewer.ID, draft)
	if err == nil {
		c.announcer.MessageSent(sent.Message, sent.Badge)
		sent.Message = sent.Message.For(viewer.ID)
		return sent, nil
	}
	if !errors.Is(err, ErrClientMessageIDUsed) {
		return Sent{}, fmt.Errorf("send message: %w", err)
	}
	first, err := c.store.MessageByClientID(ctx, viewer.ID, draft.ChannelID, draft.ClientMessageID)
	if err != nil {
		return Sent{}, fmt.Errorf("send message again: %w", err)
	}
	if !first.Deleted && first.Body != draft.Body {
		return Sent{}, &fault.Error{
			Code: fault.Conflict, Argument: "clientMessageId",
			Message: "clientMessageId was used in this channel for a message with another body",
		}
	}
	badge, err := c.badges.Badge(ctx, viewer.ID, draft.ChannelID, limit)
	if err != nil {
		return Sent{}, err
	}
	return Sent{Message: first.For(viewer.ID), Badge: badge, Duplicate: true}, nil
}

// Delete takes a message's words and mentions away; its sender may, and a service. Deleted again, it stays as it is.
func (c *Channels) Delete(ctx context.Context, viewer person.Viewer, channel id.Channel, seq id.Seq) (Message, error) {
	if err := fault.CheckRange("seq", seq, 0, id.MaxSeq); err != nil {
		return Message{}, err
	}
	var deleted, was Message
	var version id.Seq
	err := c.store.LockHead(ctx, channel, func(head Head) error {
		after, err := enter(ctx, viewer, head)
		if err != nil {
			return err
		}
		if was, err = head.Message(ctx, seq); err != nil {
			return err
		}
		if seq <= after {
			return fault.NoMessage()
		}
		if was.Sender.ID != viewer.ID && viewer.Role != person.RoleService {
			return fault.New(fault.Forbidden, "only its sender deletes a message")
		}
		if version, err = head.Delete(ctx, seq); err != nil {
			return err
		}
		deleted, err = head.Message(ctx, seq)
		return err
	})
	if err != nil {
		return Message{}, fmt.Errorf("delete message: %w", err)
	}
	if version > 0 {
		c.announcer.MessageDeleted(was, version)
	}
	return deleted.For(viewer.ID), nil
}

// Messages returns the newest messages before a seq of a channel that the viewer sees, oldest first. A nil before
// means up to the newest.
func (c *Channels) Messages(ctx context.Context, viewer person.Viewer, channel Channel, before *id.Seq, last int) ([]Message, error) {
	if err := fault.CheckRange("last", last, 1, MaxPage); err != nil {
		return nil, err
	}
	until := id.MaxSeq + 1
	if before != nil {
		until = *before
	}
	messages, err := c.store.MessagesBefore(ctx, channel.ID, channel.VisibleAfter, until, last)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	return ForAll(messages, viewer.ID), nil
}

// ForAll returns messages as one person sees them.
func ForAll(messages []Message, viewer id.User) []Message {
	for i, m := range messages {
		messages[i] = m.For(viewer)
	}
	return messages
}

func (d Draft) check() error {
	if err := fault.CheckText("body", d.Body, 0, MaxBodyLength); err != nil {
		return err
	}
	if err := fault.CheckText("clientMessageId", d.ClientMessageID, 0, maxClientID); err != nil {
		return err
	}
	if len(d.Mentions) > MaxMentions {
		return fault.BadInput("mentions", "must have at most %d entries", MaxMentions)
	}
	return nil
}
