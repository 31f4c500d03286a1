package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
)

// MaxCursors bounds the cursors of one call.
const MaxCursors = 1000

// UnseenFor is how long a device may be silent before it is forgotten.
const UnseenFor = 90 * 24 * time.Hour

// Confirmed is a cursor that a device gives: it holds the channel up to Seq and has heard of deletions up to Version.
type Confirmed struct {
	ChannelID id.Channel
	Seq       id.Seq
	Version   *id.Seq // nil where it does not know
}

// Recorded is a device's cursor as it is kept.
type Recorded struct {
	ChannelID        id.Channel
	DeviceID         id.Device
	LastDeliveredSeq id.Seq
	ConfirmedAt      time.Time
}

// Action says what a device should do about a channel.
type Action string

// The actions.
const (
	ActionNone   Action = "NONE"
	ActionDiff   Action = "DIFF"
	ActionResync Action = "RESYNC"
)

// ChannelAction is what a device should do about one channel. LastDeliveredSeq is 0 where nobody knows a cursor.
type ChannelAction struct {
	ChannelID        id.Channel
	LastDeliveredSeq id.Seq
	HighWaterSeq     id.Seq
	Action           Action
}

// ActionPage is a part of what a device should do, in the order of the channels' ids.
type ActionPage struct {
	Channels   []ChannelAction
	StoreEpoch string
	HasNext    bool
}

// DeviceRequest asks what a device lacks in all channels of its person.
type DeviceRequest struct {
	DeviceID   id.Device
	Held       []Confirmed // what it says it holds, where it knows
	StoreEpoch *string     // the store epoch of its last answer, where it knows
	First      int
	After      id.Channel // the last channel of the page before
}

// SyncDevice says for a page of the person's channels, in one look, which a device lacks something in. Channels that
// its person is not in are passed over in what it holds.
func (d *Deliveries) SyncDevice(ctx context.Context, user id.User, req DeviceRequest) (ActionPage, error) {
	if err := checkDevice(req.DeviceID); err != nil {
		return ActionPage{}, err
	}
	if err := checkConfirmed("held", req.Held); err != nil {
		return ActionPage{}, err
	}
	if err := fault.CheckRange("first", req.First, 1, maxPage); err != nil {
		return ActionPage{}, err
	}
	states, epoch, err := d.store.SyncStates(ctx, user, req.DeviceID, req.After, req.First+1)
	if err != nil {
		return ActionPage{}, fmt.Errorf("sync device: %w", err)
	}
	page := ActionPage{HasNext: len(states) > req.First, StoreEpoch: epoch}
	states = states[:min(req.First, len(states))]
	storeChanged := req.StoreEpoch != nil && *req.StoreEpoch != epoch

	says := make(map[id.Channel]Held, len(req.Held))
	for _, h := range merge(req.Held) {
		says[h.ChannelID] = Held{After: &h.Seq, SinceVersion: h.Version}
	}
	page.Channels = make([]ChannelAction, len(states))
	var asked []int // of which channels deletions must be counted
	var stretches []Stretch
	for i, s := range states {
		known := s.merge(says[s.ChannelID])
		page.Channels[i] = ChannelAction{ChannelID: s.ChannelID, LastDeliveredSeq: known.said, HighWaterSeq: s.HighWaterSeq}
		action := &page.Channels[i].Action
		switch {
		case storeChanged, known.resync(s, d.maxGap) != "":
			*action = ActionResync
		case known.seq < s.HighWaterSeq:
			*action = ActionDiff
		default:
			*action = ActionNone
		}
		if *action != ActionResync && known.mayLackDeletions(s) {
			asked, stretches = append(asked, i), append(stretches, known.stretch(s))
		}
	}
	if len(asked) == 0 {
		return page, nil
	}
	counts, err := d.store.CountDeletions(ctx, stretches, maxDeletions+1)
	if err != nil {
		return ActionPage{}, fmt.Errorf("sync device: %w", err)
	}
	for n, i := range asked {
		switch {
		case counts[n] > maxDeletions:
			page.Channels[i].Action = ActionResync
		case counts[n] > 0:
			page.Channels[i].Action = ActionDiff
		}
	}
	return page, nil
}

// Confirm merges what a device holds into its record. Cursors only grow, and none passes the newest message; of one
// channel given twice the larger counts. Either all are kept or, where the person is not in one of the channels,
// none: then it is NOT_FOUND. What was received from another store than this is, as the store epoch of the answer
// that brought it tells, is CONFLICT: there the seqs are those of other messages.
func (d *Deliveries) Confirm(ctx context.Context, user id.User, device id.Device, storeEpoch *string, cursors []Confirmed) ([]Recorded, error) {
	if err := checkDevice(device); err != nil {
		return nil, err
	}
	if err := checkConfirmed("cursors", cursors); err != nil {
		return nil, err
	}
	if len(cursors) == 0 {
		return []Recorded{}, nil
	}
	recorded, err := d.store.Confirm(ctx, user, device, storeEpoch, merge(cursors))
	if err != nil {
		return nil, fmt.Errorf("confirm delivery: %w", err)
	}
	return recorded, nil
}

// Forget drops all that is kept of a device, and reports whether anything was.
func (d *Deliveries) Forget(ctx context.Context, user id.User, device id.Device) (bool, error) {
	if err := checkDevice(device); err != nil {
		return false, err
	}
	known, err := d.store.ForgetDevice(ctx, user, device)
	if err != nil {
		return false, fmt.Errorf("forget device: %w", err)
	}
	return known, nil
}

// ForgetUnseen drops all that is kept of devices last heard of before a time, and returns how many there were.
func (d *Deliveries) ForgetUnseen(ctx context.Context, before time.Time) (int, error) {
	var total int
	for {
		n, err := d.store.ForgetUnseen(ctx, before, maxPage)
		if err != nil {
			return total, fmt.Errorf("forget unseen devices: %w", err)
		}
		total += n
		if n < maxPage {
			return total, nil
		}
	}
}

// merge returns each channel once, in the order of ids, with the furthest cursor. Seq and version stay together: a
// larger version that came with a smaller seq says nothing of deletions among what the larger seq holds.
func merge(cursors []Confirmed) []Confirmed {
	merged := make(map[id.Channel]Confirmed, len(cursors))
	for _, c := range cursors {
		if furthest, ok := merged[c.ChannelID]; !ok || c.isPast(furthest) {
			merged[c.ChannelID] = c
		}
	}
	ordered := make([]Confirmed, 0, len(merged))
	for _, c := range merged {
		ordered = append(ordered, c)
	}
	slices.SortFunc(ordered, func(a, b Confirmed) int { return cmp.Compare(a.ChannelID, b.ChannelID) })
	return ordered
}

// isPast reports whether c holds more than other, or as much and has heard of more deletions.
func (c Confirmed) isPast(other Confirmed) bool {
	if c.Seq != other.Seq || c.Version == nil || other.Version == nil {
		return c.Seq > other.Seq || c.Seq == other.Seq && c.Version != nil
	}
	return *c.Version > *other.Version
}

func checkConfirmed(argument string, cursors []Confirmed) error {
	if len(cursors) > MaxCursors {
		return fault.BadInput(argument, "must have at most %d entries", MaxCursors)
	}
	for i, c := range cursors {
		if err := fault.CheckRange(fmt.Sprintf("%s[%d].seq", argument, i), c.Seq, 0, id.MaxSeq); err != nil {
			return err
		}
		if c.Version == nil {
			continue
		}
		if err := fault.CheckRange(fmt.Sprintf("%s[%d].version", argument, i), *c.Version, 0, id.MaxSeq); err != nil {
			return err
		}
	}
	return nil
}
