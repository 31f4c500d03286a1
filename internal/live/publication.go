package live

import (
	"encoding/json"
	"slices"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// announcement is what is told of one commit. Exactly one of its parts is set.
type announcement struct {
	// Origin is the process that tells: it has worked its own announcements in already when they come back.
	Origin string `json:"origin"`
	// Store is the store epoch that the versions belong to.
	Store string `json:"store"`

	Event  *event  `json:"event,omitempty"`  // on the channel's topic
	Badges *badges `json:"badges,omitempty"` // on the person's
	Look   *look   `json:"look,omitempty"`   // on the person's
	Icon   *icon   `json:"icon,omitempty"`   // on the person's
	Reader *reader `json:"reader,omitempty"` // on that of the channel's receipts
}

// event is one version of a channel's head.
type event struct {
	Kind    kind       `json:"kind"`
	Channel id.Channel `json:"channel"`
	Version id.Seq     `json:"version"`
	// Of a message sent, and of a message deleted as it was.
	Seq      id.Seq    `json:"seq,omitempty"`
	Sender   id.User   `json:"sender,omitempty"`
	Mentions []id.User `json:"mentions,omitempty"`
	Everyone bool      `json:"everyone,omitempty"`
	// Of a message sent: all of it, and its sender's badge.
	Message *channel.Message `json:"message,omitempty"`
	Badge   *readstate.Badge `json:"badge,omitempty"`
	// Of a change of members.
	Left []id.User `json:"left,omitempty"`
}

type kind string

const (
	sent    kind = "sent"
	deleted kind = "deleted"
	members kind = "members"
)

// names reports whether the event's message names a person, who is not its sender.
func (e *event) names(user id.User) bool {
	return e.Everyone || slices.Contains(e.Mentions, user)
}

// badges are badges of one person that were read after one of their cursors moved.
type badges struct {
	Badges []readstate.Badge `json:"badges"`
	Limit  int               `json:"limit"` // counted to here
}

// look says that a person has joined a channel: whoever serves them should look.
type look struct {
	User    id.User    `json:"user"`
	Channel id.Channel `json:"channel"`
}

// icon says that who wrote to a person may be others than before.
type icon struct {
	User id.User `json:"user"`
}

// reader says how far a member of a channel has read, or that there are others to read or not to.
type reader struct {
	Channel id.Channel `json:"channel"`
	Member  int32      `json:"member"` // their index
	UpTo    id.Seq     `json:"upTo,omitempty"`
	Others  bool       `json:"others,omitempty"`
}

func (a *announcement) topic() Topic {
	switch {
	case a.Event != nil:
		return channelTopic(a.Event.Channel)
	case a.Badges != nil:
		return userTopic(a.Badges.Badges[0].UserID)
	case a.Look != nil:
		return userTopic(a.Look.User)
	case a.Reader != nil:
		return receiptsTopic(a.Reader.Channel)
	default:
		return userTopic(a.Icon.User)
	}
}

func (a *announcement) encode() ([]byte, error) { return json.Marshal(a) }

func decode(payload []byte) (*announcement, error) {
	var a announcement
	err := json.Unmarshal(payload, &a)
	return &a, err
}

// whole reports whether an announcement that came from outside has the parts that it needs.
func (a *announcement) whole() bool {
	switch {
	case a.Event != nil:
		switch a.Event.Kind {
		case sent:
			return a.Event.Version > 0 && a.Event.Message != nil && a.Event.Badge != nil
		case deleted, members:
			return a.Event.Version > 0
		default:
			return false
		}
	case a.Badges != nil:
		return len(a.Badges.Badges) > 0
	default:
		return a.Look != nil || a.Icon != nil || a.Reader != nil
	}
}
