package e2e_test

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// syncChannel asks for one page.
func (m *machine) syncChannel(t *rapid.T) {
	device, room := m.device(t), m.room(t)
	switch rapid.IntRange(0, 5).Draw(t, "odd at 0 and 1") {
	case 0: // the client holds what a restored server has forgotten, and so the record is void
		ahead := room.head() + 1
		m.ask(t, device, room, delivery.Held{After: &ahead})
		m.ask(t, device, room, delivery.Held{})
	case 1: // the client comes from another store
		other := "another"
		m.ask(t, device, room, delivery.Held{After: new(id.Seq), StoreEpoch: &other})
	default:
		m.ask(t, device, room, m.held(t, device, room))
	}
}

// catchUp asks until there is no more. Then the device holds exactly what its owner may see, from the newest resync on.
func (m *machine) catchUp(t *rapid.T) {
	device, room := m.device(t), m.room(t)
	for more := true; more; {
		more = m.ask(t, device, room, m.held(t, device, room))
	}
	seat := room.seat(device.owner)
	if seat == nil {
		return
	}
	held := device.stored[room.id]
	want, got := make(map[id.Seq]string), make(map[id.Seq]string)
	for i, post := range room.posts {
		seq := id.Seq(i + 1)
		if post.deletedAt == 0 && seq > max(seat.joined, held.floor) {
			want[seq] = post.body
		}
		if body, ok := held.bodies[seq]; ok && seq > seat.joined {
			got[seq] = body
		}
	}
	wantSame(t, "messages on the device", got, want)
}

// ask makes one call and gives its answer to the device. It reports whether there is more.
func (m *machine) ask(t *rapid.T, device *device, room *room, held delivery.Held) bool {
	limit := rapid.IntRange(1, maxGap).Draw(t, "limit")
	answer, err := m.deliveries.Sync(t.Context(), device.owner, delivery.Request{
		ChannelID: room.id, DeviceID: device.name, Held: held, Limit: limit, Cap: readstate.DefaultCap,
	})
	seat := room.seat(device.owner)
	if seat == nil {
		wantCode(t, err, fault.NotFound)
		return false
	}
	wantCode(t, err, done)

	var heardAt *int
	if held.SinceVersion != nil {
		heardAt = &device.stored[room.id].heardAt
	}
	key := recordKey{device.deviceKey, room.id}
	want := m.reference.expect(key, room, held.After, heardAt)
	if want.reason == delivery.CursorAhead {
		delete(m.reference.records, key)
	}
	if held.StoreEpoch != nil && *held.StoreEpoch != m.storeEpoch {
		want.reason = delivery.StoreChanged
	}

	first, last := want.seq, min(want.seq+id.Seq(limit), room.head())
	more := last < room.head()
	switch answer := answer.(type) {
	case *delivery.Diff:
		wantSame(t, "reason", "", want.reason)
		wantSame(t, "ends of the diff", [2]id.Seq{answer.FromSeq, answer.ToSeq}, [2]id.Seq{first + 1, last})
		wantSame(t, "more", answer.HasMore, more)
		for _, seq := range answer.DeletedSeqs {
			if seq <= seat.joined || seq > first || room.posts[seq-1].deletedAt == 0 {
				t.Fatalf("the device is told to drop %d", seq)
			}
		}
		m.wantMessages(t, device.owner, room, first, last, answer.Messages)
		m.wantStoreEpoch(t, answer.StoreEpoch)
		m.wantBadge(t, device.owner, room, answer.Badge, readstate.DefaultCap)
	case *delivery.Resync:
		wantSame(t, "reason", answer.Reason, want.reason)
		wantSame(t, "bounds", [2]id.Seq{id.Seq(answer.MaxGap), answer.ToSeq}, [2]id.Seq{maxGap, room.head()})
		m.wantMessages(t, device.owner, room, max(seat.joined, room.head()-id.Seq(limit)), room.head(), answer.Messages)
		m.wantStoreEpoch(t, answer.StoreEpoch)
		m.wantBadge(t, device.owner, room, answer.Badge, readstate.DefaultCap)
		more = false
	}
	device.apply(room.id, answer, m.reference.clock)
	return more
}

// syncDevice asks about all channels, page by page.
func (m *machine) syncDevice(t *rapid.T) {
	device := m.device(t)
	knows := rapid.SampledFrom([]*string{nil, &m.storeEpoch, &m.storeEpoch, new("another")}).Draw(t, "storeEpoch")
	says := []delivery.Confirmed{{ChannelID: noChannel, Seq: 1}}
	told := make(map[id.Channel]delivery.Held)
	for _, room := range m.reference.rooms {
		held := m.held(t, device, room)
		if held.After == nil {
			continue
		}
		told[room.id] = held
		says = append(says, delivery.Confirmed{ChannelID: room.id, Seq: *held.After, Version: held.SinceVersion})
	}
	want := make(map[id.Channel]delivery.ChannelAction)
	for _, room := range m.reference.rooms {
		if room.seat(device.owner) == nil {
			continue
		}
		var heardAt *int
		if told[room.id].SinceVersion != nil {
			heardAt = &device.stored[room.id].heardAt
		}
		e := m.reference.expect(recordKey{device.deviceKey, room.id}, room, told[room.id].After, heardAt)
		if knows != nil && *knows != m.storeEpoch {
			e.action = delivery.ActionResync
		}
		want[room.id] = delivery.ChannelAction{
			ChannelID: room.id, LastDeliveredSeq: e.said, HighWaterSeq: room.head(), Action: e.action,
		}
	}
	got := make(map[id.Channel]delivery.ChannelAction)
	for after, more := id.Channel(0), true; more; {
		page, err := m.deliveries.SyncDevice(t.Context(), device.owner, delivery.DeviceRequest{
			DeviceID: device.name, Held: says, StoreEpoch: knows, First: 2, After: after,
		})
		wantCode(t, err, done)
		m.wantStoreEpoch(t, page.StoreEpoch)
		for _, action := range page.Channels {
			if action.ChannelID <= after {
				t.Fatalf("channel %d comes after %d", action.ChannelID, after)
			}
			after = action.ChannelID
			got[action.ChannelID] = action
		}
		more = page.HasNext
	}
	wantSame(t, "actions", got, want)
}

// confirm tells the server what a device holds in some channels, and now and then more than there is.
func (m *machine) confirm(t *rapid.T) {
	device := m.device(t)
	says := make(map[id.Channel]record)
	for _, channelID := range slices.Sorted(maps.Keys(device.stored)) {
		held := device.stored[channelID]
		switch rapid.SampledFrom([]string{"nothing", "what it holds", "too much"}).Draw(t, "confirm") {
		case "what it holds":
			says[channelID] = record{held.after, held.heardAt}
		case "too much":
			says[channelID] = record{id.MaxSeq, held.heardAt}
		}
	}
	m.tell(t, device, says)
}

// tell confirms what a device says, each channel twice.
func (m *machine) tell(t *rapid.T, device *device, says map[id.Channel]record) {
	var cursors []delivery.Confirmed
	for _, channelID := range slices.Sorted(maps.Keys(says)) {
		seq := says[channelID].seq
		cursors = append(cursors,
			delivery.Confirmed{ChannelID: channelID, Seq: seq, Version: &device.stored[channelID].version},
			delivery.Confirmed{ChannelID: channelID, Seq: max(seq-1, 0)})
	}
	recorded, err := m.deliveries.Confirm(t.Context(), device.owner, device.name, nil, cursors)
	code := m.reference.confirm(device.deviceKey, says)
	wantCode(t, err, code)
	if code != done {
		return
	}
	got, want := make(map[id.Channel]id.Seq), make(map[id.Channel]id.Seq)
	for _, r := range recorded {
		wantSame(t, "device", r.DeviceID, device.name)
		got[r.ChannelID] = r.LastDeliveredSeq
	}
	for channelID := range says {
		want[channelID] = m.reference.records[recordKey{device.deviceKey, channelID}].seq
	}
	wantSame(t, "record", got, want)
}

func (m *machine) forget(t *rapid.T) {
	device := m.device(t)
	known, err := m.deliveries.Forget(t.Context(), device.owner, device.name)
	wantCode(t, err, done)
	wantSame(t, "known", known, m.reference.forget(device.deviceKey))
}

func (m *machine) backUp(t *rapid.T) { m.device(t).backUp() }

// restore sets a device back to its backup, after it has confirmed all that it holds.
func (m *machine) restore(t *rapid.T) {
	device := m.device(t)
	says := make(map[id.Channel]record)
	for channelID, held := range device.stored {
		if m.reference.room(channelID).seat(device.owner) != nil {
			says[channelID] = record{held.after, held.heardAt}
		}
	}
	m.tell(t, device, says)
	device.restore()
}

// held draws how much of what it holds a device says: all of it, or as much as it must. One that was set back holds
// less than is on record, in messages or in deletions heard of, and says so.
func (m *machine) held(t *rapid.T, device *device, room *room) delivery.Held {
	s, on := device.stored[room.id], m.reference.records[recordKey{device.deviceKey, room.id}]
	switch {
	case s == nil && on == nil:
		return delivery.Held{}
	case s == nil:
		return delivery.Held{After: new(id.Seq)}
	}
	lacksMessages := on != nil && on.seq > s.after
	lacksDeletions := on != nil && on.seq <= s.after && on.heardAt > s.heardAt
	switch {
	case !lacksMessages && !lacksDeletions && rapid.Bool().Draw(t, "silent"):
		return delivery.Held{}
	case !lacksDeletions && rapid.Bool().Draw(t, "without version"):
		return delivery.Held{After: &s.after}
	default:
		return delivery.Held{After: &s.after, SinceVersion: &s.version, StoreEpoch: &s.epoch}
	}
}

func (m *machine) wantMessages(t *rapid.T, who id.User, room *room, after, upTo id.Seq, got []channel.Message) {
	t.Helper()
	if len(got) != int(upTo-after) {
		t.Fatalf("%d messages, want those after %d up to %d", len(got), after, upTo)
	}
	for i, message := range got {
		m.wantMessage(t, who, room, after+id.Seq(i+1), message)
	}
}
