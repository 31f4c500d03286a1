package e2e_test

import (
	"maps"
	"slices"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/readstate"
)

// done is the code of a call that succeeds.
const done fault.Code = ""

// reference is what everybody must see, worked out the slow way: it keeps every message and, for each person, which
// ones they have read. It knows nothing of heads, versions or SQL.
type reference struct {
	clock   int // counts what happened
	rooms   []*room
	records map[recordKey]*record
	devices map[deviceKey]bool // those on record
}

// room is a channel.
type room struct {
	id       id.Channel
	kind     channel.Kind
	name     string
	creator  id.User // 0 where a service made it
	posts    []*post // the message n is posts[n-1]
	seats    map[id.User]*seat
	activeAt int
}

// post is a message.
type post struct {
	sender    id.User
	body      string
	clientID  string
	named     []id.User
	deletedAt int // 0 while it stands
}

// seat is a person in a room. It stays when they leave.
type seat struct {
	member bool
	joined id.Seq // the newest message at joining
	read   map[id.Seq]bool
	epoch  int
	muted  bool

	furthest id.Seq // ever read, but for what joining brought
	moved    moved
}

func newReference() *reference {
	return &reference{records: make(map[recordKey]*record), devices: make(map[deviceKey]bool)}
}

// room returns the room of an id, and nil where there is none.
func (r *reference) room(channelID id.Channel) *room {
	for _, room := range r.rooms {
		if room.id == channelID {
			return room
		}
	}
	return nil
}

// create returns the room that a creation ends with, its id still 0 where it is a new one that names none.
func (r *reference) create(made channel.New) (*room, fault.Code) {
	if made.Kind == channel.Direct {
		for _, room := range r.rooms {
			if room.kind == channel.Direct && slices.Equal(room.members(), made.Members) {
				return room, done
			}
		}
	}
	if made.ID != 0 && r.room(made.ID) != nil {
		return nil, fault.Conflict
	}
	r.clock++
	room := &room{
		id: made.ID, kind: made.Kind, name: made.Name, creator: made.CreatorID,
		seats: make(map[id.User]*seat), activeAt: r.clock,
	}
	for _, user := range made.Members {
		room.join(user)
	}
	r.rooms = append(r.rooms, room)
	return room, done
}

// enter says whether somebody may know of a room: a service, which is nobody, knows of all.
func (r *room) enter(viewer id.User) fault.Code {
	if viewer != nobody && r.seat(viewer) == nil {
		return fault.NotFound
	}
	return done
}

func (r *reference) add(viewer id.User, room *room, users []id.User) fault.Code {
	switch {
	case room.enter(viewer) != done:
		return fault.NotFound
	case room.kind == channel.Direct:
		return fault.BadUserInput
	}
	for _, user := range users {
		room.join(user)
	}
	return done
}

func (r *reference) remove(viewer id.User, room *room, user id.User) fault.Code {
	switch {
	case room.enter(viewer) != done:
		return fault.NotFound
	case room.kind == channel.Direct:
		return fault.BadUserInput
	case viewer != nobody && viewer != user && viewer != room.creator:
		return fault.Forbidden
	}
	if seat := room.seat(user); seat != nil {
		seat.member = false
	}
	return done
}

// send returns the seq of the message that a send ends with.
func (r *reference) send(sender id.User, room *room, draft channel.Draft) (seq id.Seq, duplicate bool, code fault.Code) {
	if room.enter(sender) != done {
		return 0, false, fault.NotFound
	}
	for i, p := range room.posts {
		if draft.ClientMessageID == "" || p.sender != sender || p.clientID != draft.ClientMessageID {
			continue
		}
		if p.deletedAt == 0 && p.body != draft.Body {
			return 0, false, fault.Conflict
		}
		return id.Seq(i + 1), true, done
	}
	r.clock++
	sent := &post{sender: sender, body: draft.Body, clientID: draft.ClientMessageID}
	for _, user := range room.members() {
		if user != sender && (draft.MentionsEveryone || slices.Contains(draft.Mentions, user)) {
			sent.named = append(sent.named, user)
		}
	}
	room.posts = append(room.posts, sent)
	room.activeAt = r.clock
	seat := room.seat(sender)
	seat.readTo(room.head())
	seat.furthest, seat.moved = room.head(), moved{by: inspect.Sent}
	return room.head(), false, done
}

func (r *reference) delete(viewer id.User, room *room, seq id.Seq) fault.Code {
	if room.enter(viewer) != done || seq < 1 || seq > room.head() {
		return fault.NotFound
	}
	target := room.posts[seq-1]
	switch {
	case viewer != nobody && seq <= room.seat(viewer).joined:
		return fault.NotFound
	case viewer != nobody && viewer != target.sender:
		return fault.Forbidden
	case target.deletedAt == 0:
		r.clock++
		target.deletedAt, target.body, target.named = r.clock, "", nil
	}
	return done
}

func (r *room) markRead(user id.User, device id.Device, upTo id.Seq, epoch *int) readstate.Outcome {
	seat := r.seat(user)
	switch {
	case seat == nil:
		return readstate.NotFound
	case epoch != nil && *epoch < seat.epoch:
		return readstate.VoidEpoch
	}
	advanced := seat.readTo(min(upTo, r.head()))
	if advanced {
		seat.furthest, seat.moved = max(seat.furthest, min(upTo, r.head())), moved{inspect.MarkRead, device}
	}
	switch {
	case upTo > r.head():
		return readstate.ClampedToNewest
	case advanced:
		return readstate.Advanced
	default:
		return readstate.Unchanged
	}
}

func (r *room) markUnread(user id.User, from id.Seq, epoch *int) readstate.Outcome {
	seat := r.seat(user)
	switch {
	case seat == nil:
		return readstate.NotFound
	case epoch != nil && *epoch < seat.epoch:
		return readstate.VoidEpoch
	}
	seat.epoch++
	seat.moved = moved{by: inspect.MarkUnread}
	before := len(seat.read)
	maps.DeleteFunc(seat.read, func(seq id.Seq, _ bool) bool { return seq >= from && seq > seat.joined })
	if len(seat.read) < before {
		return readstate.MovedBack
	}
	return readstate.Unchanged
}

func (r *room) join(user id.User) {
	if r.seat(user) != nil {
		return
	}
	if r.seats[user] == nil {
		r.seats[user] = &seat{read: make(map[id.Seq]bool)}
	}
	seat := r.seats[user]
	seat.member, seat.muted, seat.joined, seat.moved = true, false, r.head(), moved{by: inspect.Joined}
	seat.readTo(r.head())
}

// seat returns a member's seat, and nil where they are none.
func (r *room) seat(user id.User) *seat {
	if seat := r.seats[user]; seat != nil && seat.member {
		return seat
	}
	return nil
}

func (r *room) head() id.Seq { return id.Seq(len(r.posts)) }

// members returns them in ascending order.
func (r *room) members() []id.User {
	var members []id.User
	for _, user := range slices.Sorted(maps.Keys(r.seats)) {
		if r.seat(user) != nil {
			members = append(members, user)
		}
	}
	return members
}

// unread returns the messages that a member has not read, those that count and those of them that name them.
func (r *room) unread(user id.User) (unread, naming int) {
	for i, p := range r.posts {
		if r.seats[user].read[id.Seq(i+1)] || p.deletedAt > 0 || p.sender == user {
			continue
		}
		unread++
		if slices.Contains(p.named, user) {
			naming++
		}
	}
	return unread, naming
}

// readTo reads all up to seq, and reports whether something of that was unread.
func (s *seat) readTo(seq id.Seq) bool {
	before := len(s.read)
	for n := id.Seq(1); n <= seq; n++ {
		s.read[n] = true
	}
	return len(s.read) > before
}

// cursor is the message before the first that is unread.
func (s *seat) cursor() id.Seq {
	var n id.Seq
	for s.read[n+1] {
		n++
	}
	return n
}
