package e2e_test

import (
	"maps"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
)

// maxGap is small, so that a model of a few messages meets both sides of it.
const maxGap = 5

type deviceKey struct {
	owner id.User
	name  id.Device
}

type recordKey struct {
	deviceKey
	channelID id.Channel
}

// record is what the server knows of a device in a channel.
type record struct {
	seq     id.Seq
	heardAt int
}

// device is a client: what it has stored of each channel, and what it had stored when it was last backed up.
type device struct {
	deviceKey
	stored map[id.Channel]*stored
	backup map[id.Channel]*stored
}

// stored is what a client holds of one channel.
type stored struct {
	bodies  map[id.Seq]string
	floor   id.Seq // the last resync dropped all up to here
	after   id.Seq
	version id.Seq
	heardAt int // by the reference's clock, when version was told
	epoch   string
}

func newDevice(key deviceKey) *device {
	return &device{deviceKey: key, stored: make(map[id.Channel]*stored), backup: make(map[id.Channel]*stored)}
}

func (d *device) backUp() { d.backup = copies(d.stored) }

func (d *device) restore() { d.stored = copies(d.backup) }

// apply takes an answer in, as the contract tells clients to.
func (d *device) apply(channelID id.Channel, answer delivery.Sync, now int) {
	s := d.stored[channelID]
	if s == nil {
		s = &stored{bodies: make(map[id.Seq]string)}
		d.stored[channelID] = s
	}
	s.heardAt = now
	switch answer := answer.(type) {
	case *delivery.Diff:
		for _, seq := range answer.DeletedSeqs {
			delete(s.bodies, seq)
		}
		s.after, s.version, s.epoch = answer.ToSeq, answer.Version, answer.StoreEpoch
		s.floor = min(s.floor, answer.FromSeq-1)
		s.keep(answer.Messages)
	case *delivery.Resync:
		clear(s.bodies)
		s.after, s.version, s.epoch, s.floor = answer.ToSeq, answer.Version, answer.StoreEpoch, answer.ToSeq
		if len(answer.Messages) > 0 {
			s.floor = answer.Messages[0].Seq - 1
		}
		s.keep(answer.Messages)
	}
}

func (s *stored) keep(messages []channel.Message) {
	for _, message := range messages {
		if message.Deleted {
			delete(s.bodies, message.Seq)
		} else {
			s.bodies[message.Seq] = message.Body
		}
	}
}

// expectation is what a device must be told about a channel.
type expectation struct {
	said   id.Seq // the seq that the device or its record says
	seq    id.Seq // the same, but not before joining
	reason delivery.Reason
	action delivery.Action
}

// expect works out what a member's device must be told. heardAt is when it was told the version that it says, nil
// where it says none.
func (r *reference) expect(key recordKey, room *room, after *id.Seq, heardAt *int) expectation {
	joined, on := room.seat(key.owner).joined, r.records[key]
	var e expectation
	heard := 0
	switch {
	case after != nil:
		e.said = *after
	case on != nil:
		e.said = on.seq
	default:
		e.reason = delivery.NewDevice
	}
	switch {
	case heardAt != nil:
		heard = *heardAt
	case on != nil && e.said >= on.seq:
		heard = on.heardAt
	}
	e.seq = max(e.said, joined)

	switch {
	case e.reason != "":
	case e.said > room.head():
		e.reason = delivery.CursorAhead
	case room.head()-e.seq > maxGap:
		e.reason = delivery.GapTooLarge
	}
	switch {
	case e.reason != "":
		e.action = delivery.ActionResync
	case e.seq < room.head() || room.deletedSince(heard, joined, e.seq):
		e.action = delivery.ActionDiff
	default:
		e.action = delivery.ActionNone
	}
	return e
}

// deletedSince reports whether a message after the first seq and up to the other was deleted since.
func (r *room) deletedSince(heardAt int, after, upTo id.Seq) bool {
	for _, p := range r.posts[after:upTo] {
		if p.deletedAt > heardAt {
			return true
		}
	}
	return false
}

// confirm merges into the record what a device says: all, or nothing where its owner is in one of the rooms no member.
func (r *reference) confirm(key deviceKey, says map[id.Channel]record) fault.Code {
	for channelID := range says {
		if room := r.room(channelID); room == nil || room.seat(key.owner) == nil {
			return fault.NotFound
		}
	}
	for channelID, said := range says {
		at := recordKey{key, channelID}
		if r.records[at] == nil {
			r.records[at] = &record{}
		}
		on := r.records[at]
		switch seq := min(said.seq, r.room(channelID).head()); {
		case seq > on.seq:
			*on = record{seq, said.heardAt}
		case seq == on.seq:
			on.heardAt = max(on.heardAt, said.heardAt)
		}
		r.devices[key] = true
	}
	return done
}

// forget drops all that is known of a device, and reports whether it was.
func (r *reference) forget(key deviceKey) bool {
	known := r.devices[key]
	delete(r.devices, key)
	maps.DeleteFunc(r.records, func(at recordKey, _ *record) bool { return at.deviceKey == key })
	return known
}

func copies(stores map[id.Channel]*stored) map[id.Channel]*stored {
	copied := make(map[id.Channel]*stored, len(stores))
	for channelID, s := range stores {
		same := *s
		same.bodies = maps.Clone(s.bodies)
		copied[channelID] = &same
	}
	return copied
}
