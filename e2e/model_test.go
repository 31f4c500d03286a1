package e2e_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
)

const (
	// nobody is the service: it acts for a backend, and is in no channel.
	nobody id.User = 0
	// noChannel is a channel that does not exist.
	noChannel id.Channel = math.MaxInt64
	crowd                = 3
	maxRooms             = 4
)

// TestModel does at random what people, their devices and a backend can do, and compares after each step what everybody
// sees with the reference. What fails is printed as the shortest list of steps that rapid finds, with its seed.
func TestModel(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.NewDatabase(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	readStates := readstate.New(store, nil)
	base := id.User(0) // each run has people of its own, and so channels, messages and badges
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			channels:   channel.NewChannels(store, readStates, nil),
			readStates: readStates,
			deliveries: delivery.New(store, readStates, maxGap),
			inspector:  inspect.New(inspect.Config{Store: store}),
			reference:  newReference(),
			shown:      make(map[seatKey]shown),
			ids:        make(map[id.Message]place),
		}
		for range crowd {
			base++
			m.people = append(m.people, base)
		}
		m.devices = []*device{ // two people share the laptop
			newDevice(deviceKey{m.people[0], "phone"}),
			newDevice(deviceKey{m.people[0], "laptop"}),
			newDevice(deviceKey{m.people[1], "laptop"}),
		}
		m.used = m.devices[0]
		m.make(t, person.Viewer{ID: m.people[0]}, channel.New{Kind: channel.Group, Members: m.people})
		steps := map[string]func(*rapid.T){
			"":             m.compare,
			"create":       m.create,
			"add":          m.add,
			"remove":       m.remove,
			"leave":        m.leave,
			"send":         m.send,
			"send more":    m.send,
			"send as well": m.send,
			"delete":       m.delete,
			"mark read":    m.markRead,
			"mark many":    m.markMany,
			"mark unread":  m.markUnread,
			"mute":         m.mute,
			"queue":        m.queueRead,
			"replay":       m.replay,
			"sync channel": m.syncChannel,
			"catch up":     m.catchUp,
			"sync device":  m.syncDevice,
			"confirm":      m.confirm,
			"forget":       m.forget,
			"back up":      m.backUp,
			"restore":      m.restore,
		}
		t.Repeat(steps)
		t.Repeat(steps)
	})
}

// machine drives the product and the reference side by side.
type machine struct {
	channels   *channel.Channels
	readStates *readstate.ReadStates
	deliveries *delivery.Deliveries
	inspector  *inspect.Inspector

	reference *reference
	people    []id.User
	devices   []*device
	queued    []queued // reads made offline
	touched   *room    // by the step before
	used      *device  // by the step before
	steps     int

	shown      map[seatKey]shown
	ids        map[id.Message]place
	storeEpoch string
}

// queued is a mark read that waits in somebody's offline queue.
type queued struct {
	who    id.User
	cursor readstate.Cursor
}

func (m *machine) create(t *rapid.T) {
	if len(m.reference.rooms) == maxRooms {
		t.Skip("enough channels")
	}
	viewer := m.viewer(t)
	made := channel.New{Members: m.somePeople(t), Kind: channel.Group, Name: "a group"}
	if rapid.Bool().Draw(t, "direct") {
		made = channel.New{Members: []id.User{m.somebody(t)}, Kind: channel.Direct}
	}
	if rapid.Bool().Draw(t, "with a taken id") {
		made.ID = m.room(t).id
	}
	m.make(t, viewer, made)
}

func (m *machine) make(t *rapid.T, viewer person.Viewer, given channel.New) {
	whole := given
	if viewer.ID != nobody {
		whole.CreatorID, whole.Members = viewer.ID, append(slices.Clone(given.Members), viewer.ID)
	}
	slices.Sort(whole.Members)
	whole.Members = slices.Compact(whole.Members)

	got, err := m.channels.Create(t.Context(), viewer, given)
	if whole.Kind == channel.Direct && len(whole.Members) != 2 {
		wantCode(t, err, fault.BadUserInput)
		return
	}
	room, code := m.reference.create(whole)
	wantCode(t, err, code)
	if code != done {
		return
	}
	if room.id == 0 {
		room.id = got.ID
	}
	m.touched = room
	m.wantChannel(t, viewer.ID, room, got)
}

func (m *machine) add(t *rapid.T) {
	viewer, room, users := m.viewer(t), m.room(t), m.somePeople(t)
	got, err := m.channels.AddMembers(t.Context(), viewer, room.id, users)
	code := m.reference.add(viewer.ID, room, users)
	wantCode(t, err, code)
	if code == done {
		m.wantChannel(t, viewer.ID, room, got)
	}
}

func (m *machine) remove(t *rapid.T) { m.end(t, m.viewer(t), m.room(t), m.somebody(t)) }

func (m *machine) leave(t *rapid.T) {
	who := m.somebody(t)
	m.end(t, person.Viewer{ID: who}, m.room(t), who)
}

func (m *machine) end(t *rapid.T, viewer person.Viewer, room *room, user id.User) {
	got, err := m.channels.RemoveMember(t.Context(), viewer, room.id, user)
	code := m.reference.remove(viewer.ID, room, user)
	wantCode(t, err, code)
	switch {
	case code != done:
	case viewer.ID == user:
		if got != nil {
			t.Fatalf("who has left still sees %+v", got)
		}
	default:
		m.wantChannel(t, viewer.ID, room, *got)
	}
}

func (m *machine) send(t *rapid.T) {
	sender, room := m.somebody(t), m.room(t)
	draft := channel.Draft{
		ChannelID:        room.id,
		Body:             rapid.SampledFrom([]string{"hello", "goodbye"}).Draw(t, "body"),
		ClientMessageID:  rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(t, "clientMessageId"),
		Mentions:         m.somePeople(t),
		MentionsEveryone: rapid.IntRange(0, 3).Draw(t, "everyone at 0") == 0,
	}
	got, err := m.channels.Send(t.Context(), person.Viewer{ID: sender}, draft, readstate.DefaultCap)
	seq, duplicate, code := m.reference.send(sender, room, draft)
	wantCode(t, err, code)
	if code != done {
		return
	}
	if got.Duplicate != duplicate {
		t.Fatalf("duplicate is %v, want %v", got.Duplicate, duplicate)
	}
	m.wantMessage(t, sender, room, seq, got.Message)
	m.wantBadge(t, sender, room, got.Badge, readstate.DefaultCap)
}

func (m *machine) delete(t *rapid.T) {
	viewer, room := m.viewer(t), m.room(t)
	seq := m.seq(t, room)
	if 0 < seq && seq <= room.head() && rapid.Bool().Draw(t, "by its sender") {
		viewer = person.Viewer{ID: room.posts[seq-1].sender}
	}
	got, err := m.channels.Delete(t.Context(), viewer, room.id, seq)
	code := m.reference.delete(viewer.ID, room, seq)
	wantCode(t, err, code)
	if code == done {
		m.wantMessage(t, viewer.ID, room, seq, got)
	}
}

func (m *machine) markRead(t *rapid.T) {
	who, room := m.somebody(t), m.room(t)
	m.read(t, who, readstate.Cursor{ChannelID: room.id, UpToSeq: m.seq(t, room), ReadEpoch: m.epoch(t, who, room)})
}

func (m *machine) read(t *rapid.T, who id.User, cursor readstate.Cursor) {
	got, err := m.readStates.MarkRead(t.Context(), who, "phone", cursor, readstate.DefaultCap)
	room := m.reference.room(cursor.ChannelID)
	want := room.markRead(who, "phone", cursor.UpToSeq, cursor.ReadEpoch)
	if want == readstate.NotFound {
		wantCode(t, err, fault.NotFound)
		return
	}
	wantCode(t, err, done)
	m.wantResult(t, who, room, got, want)
}

func (m *machine) markMany(t *rapid.T) {
	who := m.somebody(t)
	var cursors []readstate.Cursor
	for range rapid.IntRange(0, 4).Draw(t, "cursors") {
		room := m.room(t)
		cursors = append(cursors, readstate.Cursor{ChannelID: room.id, UpToSeq: m.seq(t, room), ReadEpoch: m.epoch(t, who, room)})
	}
	if rapid.Bool().Draw(t, "and one that does not exist") {
		cursors = append(cursors, readstate.Cursor{ChannelID: noChannel, UpToSeq: 1})
	}
	got, err := m.readStates.MarkManyRead(t.Context(), who, "laptop", cursors, readstate.DefaultCap)
	wantCode(t, err, done)
	if len(got) != len(cursors) {
		t.Fatalf("%d results for %d cursors", len(got), len(cursors))
	}
	want := make([]readstate.Outcome, len(cursors))
	for i, c := range cursors {
		want[i] = readstate.NotFound
		if room := m.reference.room(c.ChannelID); room != nil {
			want[i] = room.markRead(who, "laptop", c.UpToSeq, c.ReadEpoch)
		}
	}
	for i, c := range cursors {
		m.wantResult(t, who, m.reference.room(c.ChannelID), got[i], want[i])
	}
}

func (m *machine) markUnread(t *rapid.T) {
	who, room := m.somebody(t), m.room(t)
	seq, epoch := m.seq(t, room), m.epoch(t, who, room)
	got, err := m.readStates.MarkUnread(t.Context(), who, room.id, seq, epoch, readstate.DefaultCap)
	want := room.markUnread(who, seq, epoch)
	if want == readstate.NotFound {
		wantCode(t, err, fault.NotFound)
		return
	}
	wantCode(t, err, done)
	m.wantResult(t, who, room, got, want)
}

func (m *machine) mute(t *rapid.T) {
	who, room, muted := m.somebody(t), m.room(t), rapid.Bool().Draw(t, "muted")
	got, err := m.readStates.SetMuted(t.Context(), who, room.id, muted, readstate.DefaultCap)
	seat := room.seat(who)
	if seat == nil {
		wantCode(t, err, fault.NotFound)
		return
	}
	wantCode(t, err, done)
	seat.muted = muted
	m.wantBadge(t, who, room, got, readstate.DefaultCap)
}

// queueRead notes what somebody reads while they are offline.
func (m *machine) queueRead(t *rapid.T) {
	who, room := m.somebody(t), m.room(t)
	seat := room.seat(who)
	if seat == nil {
		t.Skip("not a member")
	}
	epoch := seat.epoch
	m.queued = append(m.queued, queued{who, readstate.Cursor{ChannelID: room.id, UpToSeq: m.seq(t, room), ReadEpoch: &epoch}})
}

// replay sends a queued read at some later time. It stays in the queue, and may be sent again.
func (m *machine) replay(t *rapid.T) {
	if len(m.queued) == 0 {
		t.Skip("nothing is queued")
	}
	late := m.queued[rapid.IntRange(0, len(m.queued)-1).Draw(t, "queued")]
	m.touched = m.reference.room(late.cursor.ChannelID)
	m.read(t, late.who, late.cursor)
}

func (m *machine) somebody(t *rapid.T) id.User {
	return m.people[rapid.IntRange(0, crowd-1).Draw(t, "person")]
}

// viewer draws who makes a call: a person, or now and then the service.
func (m *machine) viewer(t *rapid.T) person.Viewer {
	if n := rapid.IntRange(0, crowd).Draw(t, "viewer"); n < crowd {
		return person.Viewer{ID: m.people[n], Role: person.RoleUser}
	}
	return person.Viewer{ID: nobody, Role: person.RoleService}
}

func (m *machine) somePeople(t *rapid.T) []id.User {
	drawn := rapid.SliceOfNDistinct(rapid.IntRange(0, crowd-1), 0, crowd, rapid.ID[int]).Draw(t, "people")
	people := make([]id.User, len(drawn))
	for i, n := range drawn {
		people[i] = m.people[n]
	}
	return people
}

// room draws a channel, often the one of the step before: what goes wrong does so between steps about the same one.
func (m *machine) room(t *rapid.T) *room {
	if n := rapid.IntRange(0, 2*len(m.reference.rooms)-1).Draw(t, "channel, or the same"); n < len(m.reference.rooms) {
		m.touched = m.reference.rooms[n]
	}
	return m.touched
}

// device draws a device in the same way.
func (m *machine) device(t *rapid.T) *device {
	if n := rapid.IntRange(0, 2*len(m.devices)-1).Draw(t, "device, or the same"); n < len(m.devices) {
		m.used = m.devices[n]
	}
	return m.used
}

// seq draws a position around a channel's messages, or one far past all.
func (m *machine) seq(t *rapid.T, room *room) id.Seq {
	seq := id.Seq(rapid.Int64Range(0, int64(room.head())+3).Draw(t, "seq"))
	if seq == room.head()+3 {
		return id.MaxSeq
	}
	return seq
}

// epoch draws the read epoch that a client of somebody's gives.
func (m *machine) epoch(t *rapid.T, who id.User, room *room) *int {
	var epoch int
	if seat := room.seat(who); seat != nil {
		epoch = seat.epoch
	}
	switch rapid.SampledFrom([]string{"none", "stored", "older", "newer", "largest"}).Draw(t, "epoch") {
	case "none":
		return nil
	case "older":
		epoch--
	case "newer":
		epoch++
	case "largest":
		epoch = math.MaxInt32
	}
	return &epoch
}
