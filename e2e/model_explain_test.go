package e2e_test

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"

	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// explanationView is what can be seen of an explanation beside the badge.
type explanationView struct {
	ReceiptSeq             id.Seq
	DeletedInGap, OwnInGap int
	LastMovedBy            inspect.Move
	Device                 id.Device // "": none was named
	Devices                []deviceView
}

type deviceView struct {
	Device id.Device
	Holds  id.Seq
}

// moved is what moved a cursor last.
type moved struct {
	by     inspect.Move
	device id.Device
}

// compareExplanation holds a badge's explanation against the reference. Its figures add up to the badge.
func (m *machine) compareExplanation(t *rapid.T, who id.User, room *room) {
	got, err := m.inspector.Explain(t.Context(), person.Viewer{ID: who}, who, room.id, readstate.MaxCap)
	wantCode(t, err, done)
	m.wantBadge(t, who, room, got.Badge, readstate.DefaultCap)
	if sum := got.Countable + got.DeletedInGap + got.OwnInGap; sum != got.UnreadUpperBound() {
		t.Fatalf("%d unread, %d deleted and %d own do not add up to %d", got.Countable, got.DeletedInGap, got.OwnInGap, got.UnreadUpperBound())
	}

	seat := room.seat(who)
	want := explanationView{ReceiptSeq: seat.furthest, LastMovedBy: seat.moved.by, Device: seat.moved.device}
	for i, p := range room.posts {
		switch {
		case seat.read[id.Seq(i+1)]:
		case p.deletedAt > 0:
			want.DeletedInGap++
		case p.sender == who:
			want.OwnInGap++
		}
	}
	for key, record := range m.reference.records {
		if key.owner == who && key.channelID == room.id {
			want.Devices = append(want.Devices, deviceView{key.name, record.seq})
		}
	}
	view := explanationView{
		ReceiptSeq: got.ReceiptSeq, DeletedInGap: got.DeletedInGap, OwnInGap: got.OwnInGap, LastMovedBy: got.LastMovedBy,
	}
	if got.LastMovedByDeviceID != nil {
		view.Device = *got.LastMovedByDeviceID
	}
	for _, d := range got.Devices {
		view.Devices = append(view.Devices, deviceView{d.DeviceID, d.LastDeliveredSeq})
	}
	for _, devices := range [][]deviceView{view.Devices, want.Devices} {
		slices.SortFunc(devices, func(a, b deviceView) int { return cmp.Compare(a.Device, b.Device) })
	}
	wantSame(t, "explanation", view, want)
}
