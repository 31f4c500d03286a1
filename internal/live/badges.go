package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// maxFilter bounds the channels that a subscription may name.
const maxFilter = 1000

// Watch says which badges to hear of.
type Watch struct {
	// ChannelIDs are the channels, in whichever of them the person is or comes to be. Nil: all.
	ChannelIDs []id.Channel
	// IncludeMuted has muted channels told of like all others. Without, a channel is told of once when it is muted.
	IncludeMuted bool
	// Cap is how far to count.
	Cap int
}

// BadgeChange is what changed since the change before it, in one piece; the first one is the whole.
type BadgeChange struct {
	Snapshot          bool
	Badges            []readstate.Badge // newest activity first
	RemovedChannelIDs []id.Channel
	Total             readstate.Total // of all channels that are not muted
	StoreEpoch        string
}

// BadgeStream tells of a person's badges. What waits is the newest badge of each channel.
type BadgeStream struct {
	hub          *Hub
	account      *account
	only         map[id.Channel]struct{} // nil: all
	includeMuted bool

	// Guarded by the hub's mu.
	wake    func()
	closed  bool
	whole   bool                // a snapshot waits
	waiting map[id.Channel]bool // the badges that wait, and whether one was muted or unmuted
	total   readstate.Total     // as it was told last
	tallied bool                // the total may be another one since
	again   bool                // tell in any case
	taken   []id.Channel        // by the last Next
	took    bool                // the last Next took a snapshot
}

// Badges subscribes to a person's badges. The first change is there when it returns.
func (h *Hub) Badges(ctx context.Context, user id.User, watch Watch) (*BadgeStream, error) {
	if len(watch.ChannelIDs) > maxFilter {
		return nil, fault.BadInput("channelIds", "must have at most %d entries", maxFilter)
	}
	if err := readstate.CheckCap(watch.Cap); err != nil {
		return nil, err
	}
	b := &BadgeStream{hub: h, includeMuted: watch.IncludeMuted, whole: true}
	if watch.ChannelIDs != nil {
		b.only = make(map[id.Channel]struct{}, len(watch.ChannelIDs))
		for _, c := range watch.ChannelIDs {
			b.only[c] = struct{}{}
		}
	}
	h.mu.Lock()
	a := h.accounts[user]
	if a == nil {
		a = newAccount(user)
		h.accounts[user] = a
	}
	b.account = a
	a.streams[b] = struct{}{}
	h.counters.badgeStreams.Add(1)
	next := a.begun + 1 // also where copies are there: whoever comes back to see it right sees the truth
	h.mu.Unlock()
	if err := h.load(ctx, a, watch.Cap, next); err != nil {
		b.Close()
		return nil, fmt.Errorf("subscribe to badges: %w", err)
	}
	return b, nil
}

// Notify has wake called whenever a change begins to wait, and at once where one does. wake must not block, and is not
// to call the stream.
func (b *BadgeStream) Notify(wake func()) {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	b.wake = wake
	b.wakeUp()
}

// Next takes the change that waits, if one does. It returns no error.
func (b *BadgeStream) Next() (BadgeChange, bool, error) {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	if b.closed || b.account.loaded == 0 || !b.waits() {
		return BadgeChange{}, false, nil
	}
	told := BadgeChange{
		Snapshot: b.whole, Total: b.account.total, StoreEpoch: b.hub.epoch,
		Badges: []readstate.Badge{}, RemovedChannelIDs: []id.Channel{},
	}
	if b.whole {
		for channelID, s := range b.account.seats {
			if b.includes(channelID) && (b.includeMuted || !s.held.Muted) {
				told.Badges = append(told.Badges, s.held.Badge)
			}
		}
	} else {
		for channelID, toggled := range b.waiting {
			switch s := b.account.seats[channelID]; {
			case s == nil:
				told.RemovedChannelIDs = append(told.RemovedChannelIDs, channelID)
			case b.includeMuted, !s.held.Muted, toggled:
				told.Badges = append(told.Badges, s.held.Badge)
			}
		}
	}
	nothing := !b.whole && !b.again && len(told.Badges) == 0 && len(told.RemovedChannelIDs) == 0 && told.Total == b.total
	b.take(told)
	if nothing {
		return BadgeChange{}, false, nil
	}
	slices.SortFunc(told.Badges, func(x, y readstate.Badge) int { return cmp.Compare(y.Activity, x.Activity) })
	b.hub.counters.delivered.Add(1)
	return told, true, nil
}

// take notes what is told. The map that was filled by a burst goes with it.
func (b *BadgeStream) take(told BadgeChange) {
	b.took, b.taken = b.whole, b.taken[:0]
	if !b.whole {
		for _, badge := range told.Badges {
			b.taken = append(b.taken, badge.ChannelID)
		}
		b.taken = append(b.taken, told.RemovedChannelIDs...)
	}
	b.whole, b.again, b.tallied, b.total = false, false, false, told.Total
	if len(b.waiting) > 1 {
		b.waiting, b.taken = nil, slices.Clip(b.taken)
	} else {
		clear(b.waiting)
	}
}

// Again has what Next took last wait again.
func (b *BadgeStream) Again() {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	b.whole, b.again = b.whole || b.took, true
	for _, channelID := range b.taken {
		b.wait(channelID, true)
	}
	b.wakeUp()
}

// Close ends the stream.
func (b *BadgeStream) Close() {
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	if b.closed {
		return
	}
	b.closed, b.waiting = true, nil
	delete(b.account.streams, b)
	b.hub.counters.badgeStreams.Add(-1)
	if len(b.account.streams) == 0 {
		b.hub.drop(b.account)
	}
}

// changed notes that a badge changed, or its total with it.
func (b *BadgeStream) changed(h *Hub, channelID id.Channel, toggled bool) {
	if b.whole {
		return
	}
	if b.includes(channelID) {
		if _, waits := b.waiting[channelID]; waits {
			h.counters.conflated.Add(1)
		}
		b.wait(channelID, toggled)
	} else {
		b.tallied = true
	}
	b.wakeUp()
}

// removed notes that a badge is gone. Of one that was muted the subscriber may never have heard.
func (b *BadgeStream) removed(h *Hub, channelID id.Channel, muted bool) {
	if _, waits := b.waiting[channelID]; !muted || b.includeMuted || waits {
		b.changed(h, channelID, false)
	}
}

func (b *BadgeStream) wait(channelID id.Channel, toggled bool) {
	if b.waiting == nil {
		b.waiting = make(map[id.Channel]bool)
	}
	b.waiting[channelID] = toggled || b.waiting[channelID]
}

// startAgain has a snapshot told next.
func (b *BadgeStream) startAgain() {
	b.whole, b.waiting = true, nil
}

func (b *BadgeStream) includes(channelID id.Channel) bool {
	if b.only == nil {
		return true
	}
	_, only := b.only[channelID]
	return only
}

func (b *BadgeStream) wakeUp() {
	if b.wake != nil && b.account.loaded > 0 && b.waits() {
		b.wake()
	}
}

// waits reports whether there may be something to tell.
func (b *BadgeStream) waits() bool { return b.whole || len(b.waiting) > 0 || b.tallied || b.again }
