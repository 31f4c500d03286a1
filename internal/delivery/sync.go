package delivery

import (
	"context"
	"fmt"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

const (
	// DefaultMaxGap is the largest gap that is still answered with a diff.
	DefaultMaxGap = 1000
	// maxDeletions bounds the deletions that a diff lists.
	maxDeletions = 1000
	// maxPage bounds the messages of one answer, the channels of one page, and the devices forgotten in one go.
	maxPage = 500
)

// Reason says why a device must resync.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	StoreChanged     Reason = "STORE_CHANGED"
	NewDevice        Reason = "NEW_DEVICE"
	CursorAhead      Reason = "CURSOR_AHEAD"
	GapTooLarge      Reason = "GAP_TOO_LARGE"
	TooManyDeletions Reason = "TOO_MANY_DELETIONS"
	// SlowReader ends a live stream whose reader fell behind; no query answers with it.
	SlowReader Reason = "SLOW_READER"
)

// Held is what a device says it holds of a channel. What is nil, it does not know.
type Held struct {
	After        *id.Seq // the newest seq it holds
	SinceVersion *id.Seq // the version of its last answer
	StoreEpoch   *string // the store epoch of its last answer
}

// Request asks what a device lacks in one channel.
type Request struct {
	ChannelID id.Channel
	DeviceID  id.Device
	Held      Held
	Limit     int // messages of the answer
	Cap       int // how far to count the badge
}

// Sync is what a device lacks: a *Diff or a *Resync.
type Sync interface{ IsChannelSync() }

// Diff is the messages from FromSeq to ToSeq, oldest first, and what the device must drop.
type Diff struct {
	Messages    []channel.Message
	DeletedSeqs []id.Seq
	FromSeq     id.Seq
	ToSeq       id.Seq
	HasMore     bool
	Version     id.Seq
	StoreEpoch  string
	Badge       readstate.Badge
}

// Resync is the newest messages, oldest first, instead of a gap.
type Resync struct {
	Reason     Reason
	MaxGap     int
	Messages   []channel.Message
	ToSeq      id.Seq
	Version    id.Seq
	StoreEpoch string
	Badge      readstate.Badge
}

// IsChannelSync marks a Sync.
func (*Diff) IsChannelSync() {}

// IsChannelSync marks a Sync.
func (*Resync) IsChannelSync() {}

// Badges looks up badges.
type Badges interface {
	Badge(ctx context.Context, user id.User, channel id.Channel, limit int) (readstate.Badge, error)
}

// Deliveries answers for what devices have received.
type Deliveries struct {
	store  Store
	badges Badges
	maxGap id.Seq
}

// New returns the deliveries kept in store. A gap of more than maxGap messages is not streamed.
func New(store Store, badges Badges, maxGap int) *Deliveries {
	return &Deliveries{store: store, badges: badges, maxGap: id.Seq(maxGap)}
}

// Sync returns what a device lacks in a channel, and NOT_FOUND where its person is not in it.
func (d *Deliveries) Sync(ctx context.Context, user id.User, req Request) (Sync, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	state, epoch, err := d.store.SyncState(ctx, user, req.DeviceID, req.ChannelID)
	if err != nil {
		return nil, fmt.Errorf("sync channel: %w", err)
	}
	known := state.merge(req.Held)
	reason := known.resync(state, d.maxGap)
	if req.Held.StoreEpoch != nil && *req.Held.StoreEpoch != epoch {
		reason = StoreChanged
	}
	if reason == CursorAhead {
		// The record may be what is ahead. It says nothing that could be relied on either way.
		if err := d.store.ResetSyncState(ctx, user, req.DeviceID, req.ChannelID); err != nil {
			return nil, fmt.Errorf("sync channel: %w", err)
		}
	}
	var deleted []id.Seq
	if reason == "" {
		if deleted, reason, err = d.deletions(ctx, known, state); err != nil {
			return nil, fmt.Errorf("sync channel: %w", err)
		}
	}
	if reason != "" {
		return d.resync(ctx, user, req, state, epoch, reason)
	}
	return d.diff(ctx, user, req, state, epoch, known, deleted)
}

// deletions returns which of the messages that a reader may hold were deleted since, or why they cannot be listed.
func (d *Deliveries) deletions(ctx context.Context, known cursor, state State) ([]id.Seq, Reason, error) {
	if !known.mayLackDeletions(state) {
		return nil, "", nil
	}
	deleted, err := d.store.DeletedSeqs(ctx, known.stretch(state), maxDeletions+1)
	if len(deleted) > maxDeletions {
		return nil, TooManyDeletions, err
	}
	return deleted, "", err
}

func (d *Deliveries) diff(ctx context.Context, user id.User, req Request, state State, epoch string, known cursor, deleted []id.Seq) (*Diff, error) {
	diff := &Diff{
		DeletedSeqs: deleted, Version: state.Version, StoreEpoch: epoch,
		FromSeq: known.seq + 1, ToSeq: known.seq,
	}
	messages, err := d.store.MessagesAfter(ctx, req.ChannelID, known.seq, state.HighWaterSeq, req.Limit)
	if err != nil {
		return nil, fmt.Errorf("sync channel: %w", err)
	}
	if n := len(messages); n > 0 {
		diff.ToSeq = messages[n-1].Seq
	}
	diff.Messages = channel.ForAll(messages, user)
	diff.HasMore = diff.ToSeq < state.HighWaterSeq
	if diff.Badge, err = d.badges.Badge(ctx, user, req.ChannelID, req.Cap); err != nil {
		return nil, err
	}
	return diff, nil
}

func (d *Deliveries) resync(ctx context.Context, user id.User, req Request, state State, epoch string, reason Reason) (*Resync, error) {
	messages, err := d.store.MessagesBefore(ctx, req.ChannelID, state.JoinedSeq, state.HighWaterSeq+1, req.Limit)
	if err != nil {
		return nil, fmt.Errorf("sync channel: %w", err)
	}
	badge, err := d.badges.Badge(ctx, user, req.ChannelID, req.Cap)
	if err != nil {
		return nil, err
	}
	return &Resync{
		Reason: reason, MaxGap: int(d.maxGap), Messages: channel.ForAll(messages, user),
		ToSeq: state.HighWaterSeq, Version: state.Version, StoreEpoch: epoch, Badge: badge,
	}, nil
}

func (r Request) check() error {
	if err := checkDevice(r.DeviceID); err != nil {
		return err
	}
	if err := fault.CheckRange("limit", r.Limit, 1, maxPage); err != nil {
		return err
	}
	if err := readstate.CheckCap(r.Cap); err != nil {
		return err
	}
	return r.Held.check()
}

func (h Held) check() error {
	if h.After != nil {
		if err := fault.CheckRange("after", *h.After, 0, id.MaxSeq); err != nil {
			return err
		}
	}
	if h.SinceVersion != nil {
		return fault.CheckRange("sinceVersion", *h.SinceVersion, 0, id.MaxSeq)
	}
	return nil
}

func checkDevice(device id.Device) error {
	return fault.CheckText("deviceId", string(device), 1, id.MaxDeviceLength)
}
