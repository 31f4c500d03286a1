package channel

import (
	"context"
	"fmt"
	"slices"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// Bounds of what a caller may give.
const (
	MaxNameLength = 200   // characters of a channel's name
	MaxBodyLength = 20000 // characters of a message
	MaxMentions   = 50    // people named by one message
	MaxPeople     = 1000  // people named in one call that changes members
	MaxPage       = 500   // members or messages of one page
	maxClientID   = 128   // characters of a clientMessageId
)

// Kind says what a channel is for.
type Kind string

// The kinds.
const (
	// Direct is the one channel of two people, for good.
	Direct Kind = "DIRECT"
	// Group has a name, and members who come and go.
	Group Kind = "GROUP"
)

// Channel is a channel as one person sees it.
type Channel struct {
	ID   id.Channel
	Kind Kind
	// Name is a group's own; of a direct channel, the other person's.
	Name         string
	MemberCount  int
	HighWaterSeq id.Seq
	// VisibleAfter is the seq after which the viewer may see messages.
	VisibleAfter id.Seq
	// PeerReadSeq is how far the other person of a direct channel has read, where both share receipts.
	PeerReadSeq *id.Seq
}

// New describes a channel to be made.
type New struct {
	ID        id.Channel // 0 has one given out
	Kind      Kind
	Name      string
	CreatorID id.User   // 0 where a service makes it
	Members   []id.User // in ascending order, each once
}

// Change is what became of a channel's members. It is none where Joined and Left are empty.
type Change struct {
	ChannelID id.Channel
	Version   id.Seq // of the head, since
	Joined    []id.User
	Left      []id.User
}

// Announcer tells whoever listens what was committed. It neither waits nor fails: who misses something finds out in
// another way. Nothing that it is handed may be changed.
type Announcer interface {
	// MessageSent is one new message, with its sender's badge of that moment.
	MessageSent(message Message, badge readstate.Badge)
	// MessageDeleted is a message as it was, and the head's version since it is gone.
	MessageDeleted(message Message, version id.Seq)
	// MembersChanged is a change that was one.
	MembersChanged(change Change)
}

// Channels answers for channels, their members and their messages.
type Channels struct {
	store     Store
	badges    Badges
	announcer Announcer
}

// NewChannels returns the channels kept in store. What a repeated send answers with, it looks up in badges. The
// announcer hears of each change; nil: nobody does.
func NewChannels(store Store, badges Badges, announcer Announcer) *Channels {
	if announcer == nil {
		announcer = nobody{}
	}
	return &Channels{store: store, badges: badges, announcer: announcer}
}

// Get returns a channel as the viewer sees it, and NOT_FOUND where they are not in it.
func (c *Channels) Get(ctx context.Context, viewer person.Viewer, channel id.Channel) (Channel, error) {
	channels, err := c.store.Channels(ctx, viewer.ID, []id.Channel{channel})
	if err != nil {
		return Channel{}, fmt.Errorf("get channel: %w", err)
	}
	if len(channels) == 0 {
		return Channel{}, fault.NoChannel()
	}
	return channels[0], nil
}

// GetMany returns those of the channels that the viewer is in, in no particular order.
func (c *Channels) GetMany(ctx context.Context, viewer person.Viewer, channels []id.Channel) ([]Channel, error) {
	found, err := c.store.Channels(ctx, viewer.ID, channels)
	if err != nil {
		return nil, fmt.Errorf("get channels: %w", err)
	}
	return found, nil
}

// Create makes a channel with the creator and the members in it. Of two people there is one direct channel: made
// again, it is the one that is there.
func (c *Channels) Create(ctx context.Context, viewer person.Viewer, channel New) (Channel, error) {
	if len(channel.Members) > MaxPeople {
		return Channel{}, fault.BadInput("input.memberIds", "must have at most %d entries", MaxPeople)
	}
	if viewer.Role != person.RoleService {
		channel.CreatorID = viewer.ID
		channel.Members = append(slices.Clone(channel.Members), viewer.ID)
	}
	channel.Members = distinct(channel.Members)
	switch channel.Kind {
	case Group:
		if err := fault.CheckText("input.name", channel.Name, 0, MaxNameLength); err != nil {
			return Channel{}, err
		}
	case Direct:
		if channel.Name != "" {
			return Channel{}, fault.BadInput("input.name", "must be left out: a direct channel is called as the other person")
		}
		if len(channel.Members) != 2 {
			return Channel{}, fault.BadInput("input.memberIds", "must name exactly the other person of a direct channel")
		}
	default:
		return Channel{}, fault.BadInput("input.kind", "must be DIRECT or GROUP")
	}
	made, err := c.store.CreateChannel(ctx, channel)
	if err != nil {
		return Channel{}, fmt.Errorf("create channel: %w", err)
	}
	c.announcer.MembersChanged(Change{ChannelID: made, Version: 1, Joined: channel.Members})
	return c.seenBy(ctx, viewer, made)
}

// AddMembers makes people members. Any member may, and a service; who is a member already stays as they are.
func (c *Channels) AddMembers(ctx context.Context, viewer person.Viewer, channel id.Channel, users []id.User) (Channel, error) {
	if len(users) > MaxPeople {
		return Channel{}, fault.BadInput("userIds", "must have at most %d entries", MaxPeople)
	}
	var change Change
	err := c.store.LockHead(ctx, channel, func(head Head) error {
		if _, err := enter(ctx, viewer, head); err != nil {
			return err
		}
		if head.Info().Kind == Direct {
			return errFixedMembers()
		}
		var err error
		change, err = head.Join(ctx, distinct(users))
		return err
	})
	if err != nil {
		return Channel{}, fmt.Errorf("add members: %w", err)
	}
	if len(change.Joined) > 0 {
		c.announcer.MembersChanged(change)
	}
	return c.seenBy(ctx, viewer, channel)
}

// RemoveMember ends a membership: anybody their own, the channel's creator and a service another's too. Who is not a
// member stays so. It returns nil where the viewer is no longer a member themselves.
func (c *Channels) RemoveMember(ctx context.Context, viewer person.Viewer, channel id.Channel, user id.User) (*Channel, error) {
	var change Change
	err := c.store.LockHead(ctx, channel, func(head Head) error {
		if _, err := enter(ctx, viewer, head); err != nil {
			return err
		}
		info := head.Info()
		if info.Kind == Direct {
			return errFixedMembers()
		}
		if user != viewer.ID && viewer.Role != person.RoleService && info.CreatorID != viewer.ID {
			return fault.New(fault.Forbidden, "only the channel's creator removes others")
		}
		var err error
		change, err = head.Leave(ctx, user)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("remove member: %w", err)
	}
	if len(change.Left) > 0 {
		c.announcer.MembersChanged(change)
	}
	if user == viewer.ID && viewer.Role != person.RoleService {
		return nil, nil //nolint:nilnil // the contract: null where the viewer is no longer a member
	}
	seen, err := c.seenBy(ctx, viewer, channel)
	if err != nil {
		return nil, err
	}
	return &seen, nil
}

// MemberPage is a part of a channel's members, in the order of their ids.
type MemberPage struct {
	Members []person.Person
	HasNext bool
}

// Members returns a page of the members of a channel that the caller may see.
func (c *Channels) Members(ctx context.Context, channel id.Channel, first int, after id.User) (MemberPage, error) {
	if err := fault.CheckRange("first", first, 1, MaxPage); err != nil {
		return MemberPage{}, err
	}
	members, err := c.store.Members(ctx, channel, after, first+1)
	if err != nil {
		return MemberPage{}, fmt.Errorf("list members: %w", err)
	}
	return MemberPage{Members: members[:min(first, len(members))], HasNext: len(members) > first}, nil
}

// seenBy returns a channel as the viewer sees it after a change. A service, which is in no channel, sees all of it.
func (c *Channels) seenBy(ctx context.Context, viewer person.Viewer, channel id.Channel) (Channel, error) {
	if viewer.Role != person.RoleService {
		return c.Get(ctx, viewer, channel)
	}
	seen, err := c.store.Channel(ctx, channel)
	if err != nil {
		return Channel{}, fmt.Errorf("get channel: %w", err)
	}
	return seen, nil
}

// enter refuses whoever must not know of the channel, and returns the seq after which others may see messages.
func enter(ctx context.Context, viewer person.Viewer, head Head) (after id.Seq, err error) {
	if viewer.Role == person.RoleService {
		return 0, nil
	}
	after, member, err := head.Joined(ctx, viewer.ID)
	if err == nil && !member {
		err = fault.NoChannel()
	}
	return after, err
}

func errFixedMembers() error {
	return fault.BadInput("channelId", "must name a group: the members of a direct channel are fixed")
}

// distinct returns the people in ascending order, each once: the order in which bulk writes lock rows.
func distinct(users []id.User) []id.User {
	users = slices.Clone(users)
	slices.Sort(users)
	return slices.Compact(users)
}

// nobody is told nothing.
type nobody struct{}

func (nobody) MessageSent(Message, readstate.Badge) {}
func (nobody) MessageDeleted(Message, id.Seq)       {}
func (nobody) MembersChanged(Change)                {}
