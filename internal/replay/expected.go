package replay

import (
	"fmt"
	"slices"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// actor is somebody of the trace.
type actor struct {
	id    id.User
	seats []*seat // in the order in which they got them
	late  []mark  // what one of their devices sent once, and may send again
	icon  icon
}

// room is a channel as it must be.
type room struct {
	id       id.Channel
	kind     channel.Kind
	seats    map[id.User]*seat
	messages []message // the one with seq n at n-1
	members  int

	turn act // the last that everything must come after which follows in the channel
}

// message is a message as it must be. Its words follow from the line it came from.
type message struct {
	line     int
	length   int
	sender   id.User
	named    []id.User // in ascending order
	mentions []id.User // those of them for whom it counts: who were members, without the sender
	everyone bool
	deleted  bool

	toAll   bool  // as it was sent
	members int   // then
	when    *span // it was sent; its act fills it in
}

// seat is a person in a channel, or out of it again.
type seat struct {
	standing
	actor *actor
	room  *room
	sent  []id.Seq // their messages since they joined
	stays []*stay
	// furthest is the furthest that they ever read, which nothing takes back, and joining does not move.
	furthest id.Seq

	alone  act   // the last that all they do in the channel must come after
	beside []act // what they have done since
}

// mark is a cursor that somebody sends for a channel.
type mark struct {
	seat   *seat
	cursor readstate.Cursor
}

// standing is what must be kept of a person in a channel.
type standing struct {
	member, muted  bool
	joined, cursor id.Seq
	epoch          int
}

// tally is a badge as it is seen.
type tally struct {
	standing
	head             id.Seq
	unread, mentions readstate.Count
}

// total is the sum of a person's badges.
type total struct {
	unread, mentions readstate.Count
	channels         int
}

func (s standing) String() string {
	if !s.member {
		return "not a member"
	}
	text := fmt.Sprintf("read up to %d since %d in epoch %d", s.cursor, s.joined, s.epoch)
	if s.muted {
		text += ", muted"
	}
	return text
}

func (t tally) String() string {
	if !t.member {
		return "no badge"
	}
	return fmt.Sprintf("%s unread and %s mentions, %v, newest %d", t.unread.Label(), t.mentions.Label(), t.standing, t.head)
}

func (t total) String() string {
	return fmt.Sprintf("%s unread and %s mentions, %d channels", t.unread.Label(), t.mentions.Label(), t.channels)
}

func (r *room) head() id.Seq { return id.Seq(len(r.messages)) }

func (r *room) at(seq id.Seq) *message { return &r.messages[seq-1] }

// admit gives a person a seat, with nothing of what is there already to read.
func (r *room) admit(a *actor) {
	s := &seat{actor: a, room: r}
	r.seats[a.id] = s
	a.seats = append(a.seats, s)
	s.join()
}

func (s *seat) join() {
	s.member, s.muted = true, false
	s.joined, s.cursor = s.room.head(), s.room.head()
	s.sent = nil
	s.stays = append(s.stays, &stay{joined: s.room.head(), left: id.MaxSeq})
	s.room.members++
}

func (s *seat) leave() {
	s.member = false
	s.stays[len(s.stays)-1].left = s.room.head()
	s.room.members--
}

func (s *seat) mute(muted bool) *silence {
	s.muted = muted
	m, stay := &silence{muted: muted}, s.stays[len(s.stays)-1]
	stay.mutes = append(stay.mutes, m)
	return m
}

func (s *seat) send(m message) id.Seq {
	m.sender, m.toAll, m.members = s.actor.id, m.everyone, s.room.members
	for _, user := range m.named {
		if other := s.room.seats[user]; other != nil && other.member && other != s {
			m.mentions = append(m.mentions, user)
		}
	}
	s.room.messages = append(s.room.messages, m)
	s.cursor = s.room.head()
	s.furthest = s.cursor
	s.sent = append(s.sent, s.cursor)
	return s.cursor
}

func (r *room) delete(seq id.Seq) {
	m := r.at(seq)
	m.deleted, m.everyone, m.mentions = true, false, nil
}

func (s *seat) markRead(c readstate.Cursor) {
	if s.member && (c.ReadEpoch == nil || *c.ReadEpoch >= s.epoch) {
		if c.UpToSeq > s.cursor {
			s.cursor = c.UpToSeq
			s.furthest = max(s.furthest, s.cursor)
		}
	}
}

func (s *seat) markUnread(from id.Seq, epoch *int) {
	if epoch != nil && *epoch < s.epoch {
		return
	}
	if from <= s.cursor {
		s.cursor = max(from-1, s.joined)
	}
	s.epoch++
}

// count looks at each message of the channel.
func (s *seat) count() (unread, mentions int) {
	for i, m := range s.room.messages {
		if id.Seq(i+1) <= s.cursor || m.deleted || m.sender == s.actor.id {
			continue
		}
		unread++
		if m.everyone || slices.Contains(m.mentions, s.actor.id) {
			mentions++
		}
	}
	return unread, mentions
}

// expected returns every badge that a person must see, and their total.
func (a *actor) expected() (map[id.Channel]tally, total) {
	badges := make(map[id.Channel]tally)
	var unread, mentions, channels int
	for _, s := range a.seats {
		if !s.member {
			continue
		}
		u, m := s.count()
		badges[s.room.id] = tally{standing: s.standing, head: s.room.head(), unread: counted(u), mentions: counted(m)}
		if s.muted {
			continue
		}
		unread, mentions = unread+u, mentions+m
		if u > 0 {
			channels++
		}
	}
	return badges, total{unread: counted(unread), mentions: counted(mentions), channels: channels}
}

// standingOf returns what a badge tells of where a member stands.
func standingOf(b readstate.Badge) standing {
	return standing{member: true, muted: b.Muted, joined: b.JoinedSeq, cursor: b.LastReadSeq, epoch: b.ReadEpoch}
}

// tallyOf returns what a badge tells.
func tallyOf(b readstate.Badge) tally {
	return tally{
		standing: standingOf(b), head: b.HighWaterSeq,
		unread: counted(b.Countable), mentions: counted(b.Naming),
	}
}

// totalOf returns what a total tells.
func totalOf(t readstate.Total) total {
	return total{unread: counted(t.Countable), mentions: counted(t.Naming), channels: t.UnreadChannels}
}

// to is the badge where messages are counted to limit.
func (t tally) to(limit int) tally {
	t.unread, t.mentions = countedTo(t.unread, limit), countedTo(t.mentions, limit)
	return t
}

// to is the total where messages are counted to limit.
func (t total) to(limit int) total {
	t.unread, t.mentions = countedTo(t.unread, limit), countedTo(t.mentions, limit)
	return t
}

func countedTo(c readstate.Count, limit int) readstate.Count {
	return readstate.Count{Count: min(c.Count, limit), Capped: c.Capped || c.Count > limit}
}

// counted is how a number is shown: exact up to what may be asked for.
func counted(n int) readstate.Count {
	return readstate.Count{Count: min(n, readstate.MaxCap), Capped: n > readstate.MaxCap}
}
