package live

import (
	"context"
	"slices"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/readstate"
	"tidemark/internal/wait"
)

const (
	// compareBatch bounds the people whose versions are read at a time.
	compareBatch = 100
	// compareRounds is how often in ReconcileEvery the hub looks whose copies are due.
	compareRounds = 10
	// doubtPause is how long the hub waits after a comparison that failed before it makes another.
	doubtPause = time.Second
	// maxForeign bounds the epochs of others that are known to be none of ours.
	maxForeign = 100
)

// reconcileAll compares every copy with the store once in ReconcileEvery, until ctx ends.
func (h *Hub) reconcileAll(ctx context.Context) {
	ticker := time.NewTicker(h.config.ReconcileEvery / compareRounds)
	defer ticker.Stop()
	r := reconciler{hub: h}
	for _, ok := r.look(ctx, nil); !ok; _, ok = r.look(ctx, nil) { // for the store's epoch
		if wait.For(ctx, leastPause); ctx.Err() != nil {
			return
		}
	}
	for {
		select {
		case <-ticker.C:
		case <-h.hurry:
			r.channels = time.Time{}
		case <-h.doubt:
			r.checkStore(ctx)
			continue
		case <-ctx.Done():
			return
		}
		if !r.compareDue(ctx) && ctx.Err() == nil {
			wait.For(ctx, doubtPause)
			wake(h.hurry)
		}
	}
}

// Resumed implements Receiver.
func (h *Hub) Resumed() {
	h.counters.resumed.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resumed++
	for _, a := range h.accounts {
		a.compared = time.Time{}
	}
	wake(h.hurry)
}

// reconciler is the one goroutine that compares.
type reconciler struct {
	hub      *Hub
	channels time.Time // when the channels were compared that are read, or the store at least
	failing  bool      // that it cannot compare was logged
}

// difference is a seat whose copy was not as new as the store, or that only one of both knows.
type difference struct {
	Version
	gone bool // the store does not know it
}

// compareDue compares the copies of those for whom it is due before the next round, and the channels that are read. It
// reports whether it could.
func (r *reconciler) compareDue(ctx context.Context) bool {
	h := r.hub
	var due []*account
	h.mu.Lock()
	latest := time.Now().Add(-h.config.ReconcileEvery * (compareRounds - 3) / compareRounds)
	for _, a := range h.accounts {
		if a.loaded > 0 && a.compared.Before(latest) {
			due = append(due, a)
		}
	}
	h.mu.Unlock()
	ok := true
	var found []difference
	for batch := range slices.Chunk(due, compareBatch) {
		differences, looked := r.look(ctx, batch)
		ok = ok && looked
		found = append(found, differences...)
	}
	if r.channels.Before(latest) {
		now := time.Now()
		h.compareIcons()
		h.compareReceipts()
		_, looked := r.look(ctx, nil)
		if ok = ok && looked && r.compareChannels(ctx); ok {
			r.channels = now
		}
	}
	if len(found) > 0 { // some of them perhaps because a publication is still under way
		wait.For(ctx, h.config.Settle)
		h.markDifferent(found)
	}
	return ok
}

// markDifferent has those seats read that are still different.
func (h *Hub) markDifferent(found []difference) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range found {
		a := h.accounts[d.UserID]
		if a == nil || a.loaded == 0 {
			continue
		}
		s := a.seats[d.ChannelID]
		switch {
		case d.gone && s != nil,
			!d.gone && (s == nil || d.Head > s.held.HeadVersion || d.State > s.held.StateVersion):
			h.markStale(d.Seat, true)
		}
	}
}

// look reads the versions of some people's badges and returns where they are different. It reports whether it could. A
// copy that was ahead of the store before it was read never was of this store, so all of its person's go.
func (r *reconciler) look(ctx context.Context, batch []*account) (found []difference, ok bool) {
	h := r.hub
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	users := make([]id.User, len(batch))
	before := make(map[readstate.Seat]held)
	h.mu.Lock()
	for i, a := range batch {
		users[i] = a.user
		for _, s := range a.seats {
			before[s.seat()] = s.held
		}
	}
	epoch, resumed, now := h.epoch, h.resumed, time.Now()
	h.mu.Unlock()
	versions, storeEpoch, err := h.store.Versions(ctx, users)
	if err != nil {
		r.failed(ctx, err)
		return nil, false
	}
	r.failing = false
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.seen(storeEpoch, epoch) {
		return nil, false
	}
	there := make(map[readstate.Seat]struct{}, len(versions))
	for _, v := range versions {
		there[v.Seat] = struct{}{}
		a := h.accounts[v.UserID]
		if a == nil || a.loaded == 0 {
			continue
		}
		s, was := a.seats[v.ChannelID], before[v.Seat]
		switch {
		case v.Head < was.HeadVersion || v.State < was.StateVersion:
			if s != nil {
				s.channel.reset()
			}
			a.forget(h)
			h.reload[a] = struct{}{}
			wake(h.mend)
		case s == nil || v.Head > s.held.HeadVersion || v.State > s.held.StateVersion:
			found = append(found, difference{Version: v})
		}
	}
	for _, a := range batch {
		if a.loaded == 0 || h.accounts[a.user] != a {
			continue
		}
		for _, s := range a.seats {
			if _, still := there[s.seat()]; !still {
				found = append(found, difference{Version: Version{Seat: s.seat()}, gone: true})
			}
		}
		if h.resumed == resumed { // else what was read may be from before the link came back
			a.compared = now
		}
	}
	return found, true
}

// compareChannels compares where channels stand whose events are read, and reports whether it could.
func (r *reconciler) compareChannels(ctx context.Context) bool {
	h := r.hub
	var read []id.Channel
	h.mu.Lock()
	for channelID, s := range h.channels {
		if len(s.listeners) > 0 {
			read = append(read, channelID)
		}
	}
	epoch := h.epoch
	h.mu.Unlock()
	for batch := range slices.Chunk(read, compareBatch) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		heads, err := h.store.HeadVersions(ctx, batch)
		cancel()
		if err != nil {
			r.failed(ctx, err)
			return false
		}
		h.mu.Lock()
		for channelID, version := range heads {
			if s := h.channels[channelID]; s != nil && s.known && h.epoch == epoch {
				s.suspect(h, version)
			}
		}
		h.mu.Unlock()
	}
	return true
}

// checkStore finds out whether the store is another one, because somebody publishes in another epoch.
func (r *reconciler) checkStore(ctx context.Context) {
	h := r.hub
	if _, ok := r.look(ctx, nil); !ok {
		wait.For(ctx, doubtPause)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.doubted == h.epoch {
		return
	}
	if len(h.foreign) >= maxForeign {
		clear(h.foreign)
	}
	h.foreign[h.doubted] = struct{}{}
}

// failed says once that copies cannot be compared.
func (r *reconciler) failed(ctx context.Context, err error) {
	if !r.failing && ctx.Err() == nil {
		r.hub.config.Logger.Warn("live badges cannot be compared with the store", "error", err)
	}
	r.failing = true
}
