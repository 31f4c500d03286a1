package readstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tidemark/internal/fault"
	"tidemark/internal/id"
)

// MaxCursors bounds the cursors of one call.
const MaxCursors = 1000

// Cursor says how far somebody has read in a channel.
type Cursor struct {
	ChannelID id.Channel
	UpToSeq   id.Seq
	// ReadEpoch is the epoch in which the person read, as their badge gave it. Nil stands for the stored one: for a
	// read made now, never for one that waited in a queue.
	ReadEpoch *int
}

// Outcome says what a call did.
type Outcome string

// The outcomes. A mark read answers with the first that holds of VoidEpoch, ClampedToNewest, Unchanged, Advanced.
const (
	Advanced        Outcome = "ADVANCED"
	MovedBack       Outcome = "MOVED_BACK"
	Unchanged       Outcome = "UNCHANGED"
	ClampedToNewest Outcome = "CLAMPED_TO_NEWEST"
	VoidEpoch       Outcome = "VOID_EPOCH"
	NotFound        Outcome = "NOT_FOUND"
)

// Result is what a call did, and the badge after it. Badge is nil where the outcome is NotFound.
type Result struct {
	ChannelID id.Channel
	Outcome   Outcome
	Badge     *Badge
}

// settleTries bounds how often a mark read is tried again because a message came between its two looks. Each retry
// needs another message at that very moment; past the bound the call is answered as unavailable, and nothing is lost.
const settleTries = 16

// MarkRead moves a person's cursor forward. It never moves it back, nor past the newest message. The counts of the
// badge it returns go to limit. It is NOT_FOUND where the person is not in the channel.
func (r *ReadStates) MarkRead(ctx context.Context, user id.User, device id.Device, cursor Cursor, limit int) (Result, error) {
	if err := fault.CheckRange("upToSeq", cursor.UpToSeq, 0, id.MaxSeq); err != nil {
		return Result{}, err
	}
	results, err := r.mark(ctx, user, device, []Cursor{cursor}, limit)
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("mark read: %w", err)
	case results[0].Outcome == NotFound:
		return Result{}, fault.NoChannel()
	default:
		return results[0], nil
	}
}

// MarkManyRead is MarkRead for several channels at once: all cursors move, or none where an error is returned. Each
// is answered, in order; a channel that the person is not in by the outcome NotFound.
func (r *ReadStates) MarkManyRead(ctx context.Context, user id.User, device id.Device, cursors []Cursor, limit int) ([]Result, error) {
	if len(cursors) > MaxCursors {
		return nil, fault.BadInput("cursors", "must have at most %d entries", MaxCursors)
	}
	for i, c := range cursors {
		if err := fault.CheckRange(fmt.Sprintf("cursors[%d].upToSeq", i), c.UpToSeq, 0, id.MaxSeq); err != nil {
			return nil, err
		}
	}

	// Locks are taken in the order of the channels' ids, so that two such calls cannot wait for one another.
	order := make([]int, len(cursors))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cursors[a].ChannelID, cursors[b].ChannelID) })
	sorted := make([]Cursor, len(cursors))
	for i, from := range order {
		sorted[i] = cursors[from]
	}
	marked, err := r.mark(ctx, user, device, sorted, limit)
	if err != nil {
		return nil, fmt.Errorf("mark many read: %w", err)
	}
	results := make([]Result, len(cursors))
	for i, from := range order {
		results[from] = marked[i]
	}
	return results, nil
}

// mark moves cursors, which come in the order of their channels, and looks again to tell what became of each. The
// badge is always of that later look: put together from what the move itself saw, it could be of a moment that never
// was, under a version that another badge has too.
func (r *ReadStates) mark(ctx context.Context, user id.User, device id.Device, cursors []Cursor, limit int) ([]Result, error) {
	if err := CheckCap(limit); err != nil {
		return nil, err
	}
	if err := fault.CheckText("deviceId", string(device), 0, id.MaxDeviceLength); err != nil {
		return nil, err
	}
	results := make([]Result, len(cursors))
	if len(cursors) == 0 {
		return results, nil
	}
	pending := make([]int, len(cursors))
	for i := range pending {
		pending[i] = i
	}
	for range settleTries {
		trying := make([]Cursor, len(pending))
		for n, i := range pending {
			trying[n] = cursors[i]
		}
		moves, err := r.store.Advance(ctx, user, device, trying)
		if err != nil {
			return nil, err
		}
		badges, err := r.badgesAfter(ctx, user, trying, limit)
		if err != nil {
			return nil, err
		}
		var unsettled []int
		for n, i := range pending {
			c := cursors[i]
			badge, member := badges[c.ChannelID]
			result, settled := Result{ChannelID: c.ChannelID, Badge: &badge}, true
			switch {
			case !member:
				result.Badge, result.Outcome = nil, NotFound
			case moves[n].Moved:
				result.Outcome = c.moved(moves[n].HighWaterSeq)
			default:
				result.Outcome, settled = c.stayed(badge)
			}
			if !settled {
				unsettled = append(unsettled, i)
			}
			results[i] = result
		}
		if len(unsettled) == 0 {
			return results, nil
		}
		pending = unsettled
	}
	return nil, fault.NotAvailable(fmt.Errorf("cursors of person %d did not settle", user))
}

// MarkUnread makes seq and all after it unread again, but for what was there before the person joined. It begins a
// new epoch, also where the cursor stands far enough back already, so that a mark read from before it is void.
func (r *ReadStates) MarkUnread(ctx context.Context, user id.User, channel id.Channel, seq id.Seq, epoch *int, limit int) (Result, error) {
	if err := CheckCap(limit); err != nil {
		return Result{}, err
	}
	if err := fault.CheckRange("fromSeq", seq, 0, id.MaxSeq); err != nil {
		return Result{}, err
	}
	moved, done, err := r.store.Retreat(ctx, user, channel, seq, epoch)
	if err != nil {
		return Result{}, fmt.Errorf("mark unread: %w", err)
	}
	badge, err := r.badgeAfter(ctx, user, channel, limit)
	if err != nil {
		return Result{}, err
	}
	result := Result{ChannelID: channel, Badge: &badge}
	switch {
	case !done:
		result.Outcome = VoidEpoch
	case moved:
		result.Outcome = MovedBack
	default:
		result.Outcome = Unchanged
	}
	return result, nil
}

// moved is the outcome of a cursor that moved while the newest message was at highWater.
func (c Cursor) moved(highWater id.Seq) Outcome {
	if c.UpToSeq > highWater {
		return ClampedToNewest
	}
	return Advanced
}

// stayed tells from a later look why a cursor did not move. It is not settled where the cursor could move now: then
// a message has come since.
func (c Cursor) stayed(now Badge) (outcome Outcome, settled bool) {
	switch {
	case c.ReadEpoch != nil && *c.ReadEpoch < now.ReadEpoch:
		return VoidEpoch, true
	case c.UpToSeq > now.HighWaterSeq:
		return ClampedToNewest, now.LastReadSeq >= now.HighWaterSeq
	default:
		return Unchanged, now.LastReadSeq >= c.UpToSeq
	}
}

// badgesAfter looks at badges after a step that may have been committed, and announces them.
func (r *ReadStates) badgesAfter(ctx context.Context, user id.User, cursors []Cursor, limit int) (map[id.Channel]Badge, error) {
	ctx, cancel := afterCommit(ctx)
	defer cancel()
	seats := make([]Seat, len(cursors))
	for i, c := range cursors {
		seats[i] = Seat{user, c.ChannelID}
	}
	list, err := r.store.BadgesOf(ctx, slices.Compact(seats), limit)
	if err != nil {
		return nil, err
	}
	// Also where nothing moves: somebody who holds an older badge may have missed that it did.
	r.announce(list, limit)
	badges := make(map[id.Channel]Badge, len(list))
	for _, b := range list {
		badges[b.ChannelID] = b
	}
	return badges, nil
}
