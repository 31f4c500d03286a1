package live

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/fault"
	"tidemark/internal/readstate"
	"tidemark/internal/wait"
)

const (
	// mendBatch bounds the badges of one read.
	mendBatch = 500
	// mendReaders bounds the reads at a time, so that calls find connections too.
	mendReaders = 4
	// The pause after a read that failed, doubled from the least to the most.
	leastPause, mostPause = 50 * time.Millisecond, 2 * time.Second
)

// mendAll reads from the store what copies lack, until ctx ends.
func (h *Hub) mendAll(ctx context.Context) {
	pause := leastPause
	for {
		next := h.closeGaps()
		err := h.mendOnce(ctx)
		if err != nil && ctx.Err() == nil {
			h.config.Logger.Warn("live badges wait for the store", "error", err)
			wait.For(ctx, pause)
			pause = min(2*pause, mostPause)
			continue
		}
		pause = leastPause
		if next == 0 {
			next = time.Hour
		}
		gap := time.NewTimer(next)
		select {
		case <-h.mend:
		case <-gap.C:
		case <-ctx.Done():
			gap.Stop()
			return
		}
		gap.Stop()
	}
}

// closeGaps gives up gaps that have been open for long enough, and returns how long the next one may stay open.
func (h *Hub) closeGaps() (next time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.gaps = slices.DeleteFunc(h.gaps, func(s *stretch) bool {
		left := s.deadline.Sub(now)
		switch {
		case !s.gapped: // it was reset
			return true
		case s.newest > s.to && left > 0:
			if next == 0 || left < next {
				next = left
			}
			return false
		case s.newest > s.to:
			s.giveUp(h)
		}
		s.gapped = false
		return true
	})
	return next
}

// mendOnce reads all that is to be read by now.
func (h *Hub) mendOnce(ctx context.Context) error {
	for {
		h.closeGaps()
		h.mu.Lock()
		var accounts []*account
		for a := range h.reload {
			accounts = append(accounts, a)
		}
		var streams []*EventStream
		for e := range h.behind {
			streams = append(streams, e)
		}
		var icons []*iconState
		for i := range h.oldIcons {
			icons = append(icons, i)
		}
		receipts := keys(h.oldReceipts)
		seats, marks, limit := h.someStale()
		h.mu.Unlock()
		if len(accounts)+len(streams)+len(seats)+len(icons)+len(receipts) == 0 {
			return nil
		}
		var group errgroup.Group // one that fails must not end the others
		group.SetLimit(mendReaders)
		for _, a := range accounts {
			group.Go(func() error { return h.reloadAccount(ctx, a) })
		}
		for _, e := range streams {
			group.Go(func() error { return h.readBehind(ctx, e) })
		}
		for _, i := range icons {
			group.Go(func() error { return h.readIcon(ctx, i) })
		}
		for _, w := range receipts {
			group.Go(func() error { return h.readReceipt(ctx, w, nil) })
		}
		group.Go(func() error { return h.readStale(ctx, seats, marks, limit) })
		if err := group.Wait(); err != nil {
			return err
		}
	}
}

// someStale returns some seats that are to be read, and how far to count. Those that nobody is served from are dropped.
func (h *Hub) someStale() (seats []readstate.Seat, marks map[readstate.Seat]mark, limit int) {
	marks = make(map[readstate.Seat]mark)
	for seat, mark := range h.stale {
		a := h.accounts[seat.UserID]
		if a == nil {
			delete(h.stale, seat)
			continue
		}
		if len(seats) == mendBatch {
			break
		}
		if limit == 0 {
			limit = a.limit
		}
		if a.limit == limit { // the others' turn comes: to count further than is asked for may take long
			seats, marks[seat] = append(seats, seat), mark
		}
	}
	return seats, marks, limit
}

func (h *Hub) readStale(ctx context.Context, seats []readstate.Seat, marks map[readstate.Seat]mark, limit int) error {
	if len(seats) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	h.mu.Lock()
	var holding, unheard []*stretch
	for _, seat := range seats {
		s := h.stretchOf(seat.ChannelID)
		s.holds++
		holding = append(holding, s)
		if !s.heard && !slices.Contains(unheard, s) {
			unheard = append(unheard, s)
		}
	}
	epoch := h.epoch
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, s := range holding {
			s.holds--
			h.release(s)
		}
	}()
	if len(unheard) > 0 {
		h.hear(ctx, unheard)
	}
	read, err := h.store.BadgesOf(ctx, seats, limit)
	if err != nil {
		return err
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epoch != epoch {
		return nil
	}
	found := make(map[readstate.Seat]readstate.Badge, len(read))
	for _, b := range read {
		found[readstate.Seat{UserID: b.UserID, ChannelID: b.ChannelID}] = b
	}
	for _, seat := range seats {
		a := h.accounts[seat.UserID]
		if a == nil {
			continue
		}
		b, member := found[seat]
		s := a.seats[seat.ChannelID]
		changed := false
		switch again := h.stale[seat] != marks[seat]; {
		case again && member && s != nil: // it is read again, and this may be newer all the same
			s.take(h, newHeld(b, limit))
			continue
		case again:
			continue
		}
		delete(h.stale, seat)
		switch {
		case member:
			changed = a.keep(h, newHeld(b, limit))
		case s != nil:
			a.remove(h, s)
			changed = true
		}
		if !member {
			h.noteLeft(a, seat.ChannelID)
		}
		if changed && marks[seat].reconciled {
			h.counters.reconciled.Add(1)
		}
	}
	return nil
}

func (h *Hub) reloadAccount(ctx context.Context, a *account) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := h.load(ctx, a, 1, 0)
	if err == nil || errors.Is(err, errDropped) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.accounts[a.user] != a || a.loaded > 0 {
			delete(h.reload, a)
		}
		return nil
	}
	return err
}

// readBehind reads what a stream lacks from the log. A reader who is no member any more is told so.
func (h *Hub) readBehind(ctx context.Context, e *EventStream) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := h.readLog(ctx, e)
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e.end(err)
	return nil
}
