package live

import (
	"context"
	"slices"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/readstate"
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
	for !h.compare(ctx, nil) { // for the store's epoch
		if pauseFor(ctx, leastPause); ctx.Err() != nil {
			return
		}
	}
	for round := 1; ; round++ {
		select {
		case <-ticker.C:
			h.compareDue(ctx, round%compareRounds == 0)
		case <-h.hurry:
			h.compareDue(ctx, true)
		case <-h.doubt:
			h.checkStore(ctx)
		case <-ctx.Done():
			return
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

// compareDue compares the copies of those for whom it is due before the next round, and the channels that are read.
func (h *Hub) compareDue(ctx context.Context, channels bool) {
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
	for batch := range slices.Chunk(due, compareBatch) {
		ok = h.compare(ctx, batch) && ok
	}
	if channels {
		if len(due) == 0 {
			ok = h.compare(ctx, nil) && ok
		}
		ok = h.compareChannels(ctx) && ok
		if !ok {
			pauseFor(ctx, doubtPause)
			wake(h.hurry)
		}
	}
}

// compare compares the copies of some people with the store, and reports whether it could. A copy that is older may be
// so because a publication is still under way, so it is looked at again a moment later.
func (h *Hub) compare(ctx context.Context, batch []*account) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	users := make([]id.User, len(batch))
	for i, a := range batch {
		users[i] = a.user
	}
	h.mu.Lock()
	begun, now := h.epoch, time.Now()
	h.mu.Unlock()
	versions, epoch, err := h.store.Versions(ctx, users)
	h.mu.Lock()
	if err != nil || !h.seen(epoch, begun) {
		h.mu.Unlock()
		return false
	}
	for _, a := range batch {
		a.compared = now
	}
	older := h.older(batch, versions)
	h.mu.Unlock()
	if len(older) == 0 {
		return true
	}
	pauseFor(ctx, h.config.Settle)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epoch != epoch {
		return true
	}
	for _, seat := range h.older(batch, versions) {
		h.markStale(seat, true)
	}
	return true
}

// older returns the seats whose copies are not as new as the store was, or that only one of both knows.
func (h *Hub) older(batch []*account, versions []Version) (seats []readstate.Seat) {
	there := make(map[readstate.Seat]struct{}, len(versions))
	for _, v := range versions {
		there[v.Seat] = struct{}{}
		a := h.accounts[v.UserID]
		if a == nil || a.loaded == 0 {
			continue
		}
		s := a.seats[v.ChannelID]
		if s == nil || v.Head > s.held.HeadVersion || v.State > s.held.StateVersion {
			seats = append(seats, v.Seat)
		}
	}
	for _, a := range batch {
		if a.loaded == 0 || h.accounts[a.user] != a {
			continue
		}
		for channelID := range a.seats {
			seat := readstate.Seat{UserID: a.user, ChannelID: channelID}
			if _, still := there[seat]; !still {
				seats = append(seats, seat)
			}
		}
	}
	return seats
}

// compareChannels compares where channels stand whose events are read, and reports whether it could.
func (h *Hub) compareChannels(ctx context.Context) bool {
	var read []id.Channel
	h.mu.Lock()
	for channelID, s := range h.channels {
		if len(s.listeners) > 0 {
			read = append(read, channelID)
		}
	}
	begun := h.epoch
	h.mu.Unlock()
	for batch := range slices.Chunk(read, compareBatch) {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout)
		heads, err := h.store.HeadVersions(ctx, batch)
		cancel()
		if err != nil {
			return false
		}
		h.mu.Lock()
		for channelID, version := range heads {
			if s := h.channels[channelID]; s != nil && s.known && h.epoch == begun {
				s.suspect(h, version)
			}
		}
		h.mu.Unlock()
	}
	return true
}

// checkStore finds out whether the store is another one, because somebody publishes in another epoch.
func (h *Hub) checkStore(ctx context.Context) {
	if !h.compare(ctx, nil) {
		pauseFor(ctx, doubtPause)
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
