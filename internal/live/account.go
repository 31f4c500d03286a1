package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// account is a person whom this process serves: the copies of all their badges.
type account struct {
	user    id.User
	seats   map[id.Channel]*seat
	total   readstate.Total
	streams map[*BadgeStream]struct{}
	limit   int // badges that are read are counted to here

	loaded   int                   // the copies are there, counted to here at least; 0 where they are not
	begun    int                   // how many reads have begun
	done     int                   // the number of the last that succeeded
	loading  chan struct{}         // closed when the read that is under way ends; nil where none is
	left     map[id.Channel]uint64 // what they were found to have left while a read is under way, with the number of a mark
	compared time.Time             // the copies were right then
}

func newAccount(user id.User) *account {
	return &account{
		user: user, seats: make(map[id.Channel]*seat), streams: make(map[*BadgeStream]struct{}),
	}
}

// forget drops all copies.
func (a *account) forget(h *Hub) {
	for _, s := range a.seats {
		delete(s.channel.seats, s)
		h.release(s.channel)
	}
	clear(a.seats)
	a.total = readstate.Total{}
	a.loaded = 0
	for stream := range a.streams {
		stream.startAgain()
	}
}

// remove drops a seat that is taken no more.
func (a *account) remove(h *Hub, s *seat) {
	channelID := s.channel.channel
	if a.seats[channelID] != s {
		return
	}
	a.total.Remove(s.held.Badge)
	delete(a.seats, channelID)
	delete(s.channel.seats, s)
	h.release(s.channel)
	for stream := range a.streams {
		stream.removed(h, channelID, s.held.Muted)
	}
}

// changed tells the subscribers that a badge is another than before.
func (a *account) changed(h *Hub, channelID id.Channel, toggled bool) {
	for stream := range a.streams {
		stream.changed(h, channelID, toggled)
	}
}

// keep takes in what a read of the store said of a seat.
func (a *account) keep(h *Hub, b held) bool {
	if s := a.seats[b.ChannelID]; s != nil {
		return s.take(h, b)
	}
	s := &seat{account: a, channel: h.stretchOf(b.ChannelID)}
	s.channel.learn(h, b.HeadVersion, b.HighWaterSeq)
	if s.channel.leftSince(a.user, b.HeadVersion) {
		h.markStale(s.seat(), false)
		h.release(s.channel)
		return false
	}
	if later, ok := s.channel.replay(b, s.channel.to); ok {
		b = later
	} else if b.HeadVersion < s.channel.to {
		h.markStale(s.seat(), false)
	}
	s.held = b
	a.seats[b.ChannelID] = s
	s.channel.seats[s] = struct{}{}
	a.total.Add(b.Badge)
	a.changed(h, b.ChannelID, false)
	return true
}

// drop ends an account that nobody subscribes to any more.
func (h *Hub) drop(a *account) {
	a.forget(h)
	delete(h.accounts, a.user)
	delete(h.reload, a)
	h.releaseUser(a.user)
}

// releaseUser ends hearing of a person if nobody looks at anything of theirs.
func (h *Hub) releaseUser(user id.User) {
	if h.accounts[user] == nil && h.icons[user] == nil {
		h.broker.Unsubscribe(userTopic(user))
	}
}

// errDropped says that nobody subscribes to an account any more.
var errDropped = errors.New("the subscription has ended")

// load returns when the account's copies are there, counted to limit at least, from the read of that number or a later
// one. It reads them if nobody else does.
func (h *Hub) load(ctx context.Context, a *account, limit, number int) error {
	if err := h.awaitStore(ctx); err != nil {
		return fmt.Errorf("load badges: %w", err)
	}
	for {
		h.mu.Lock()
		loading := a.loading
		switch {
		case h.accounts[a.user] != a:
			h.mu.Unlock()
			return errDropped
		case a.loaded >= limit && a.done >= number:
			h.mu.Unlock()
			return nil
		case loading == nil:
			a.loading, a.left = make(chan struct{}), make(map[id.Channel]uint64)
			a.limit = max(a.limit, limit)
			a.begun++
			reading := reading{account: a, number: a.begun, limit: a.limit, marks: h.marks, resumed: h.resumed, epoch: h.epoch}
			h.mu.Unlock()
			if err := h.read(ctx, reading); err != nil {
				return fmt.Errorf("load badges: %w", err)
			}
			continue
		}
		h.mu.Unlock()
		select {
		case <-loading: // it may have failed
		case <-ctx.Done():
			return fmt.Errorf("load badges: %w", context.Cause(ctx))
		}
	}
}

// reading is a read of all badges of an account, and where the hub stood when it began.
type reading struct {
	account *account
	number  int
	limit   int
	marks   uint64
	resumed uint64
	epoch   string
}

// read reads all badges of a person, after the topics that tell of changes have been subscribed to.
func (h *Hub) read(ctx context.Context, r reading) error {
	a := r.account
	var holding []*stretch
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		close(a.loading)
		a.loading, a.left = nil, nil
		h.releaseUser(a.user) // it was dropped perhaps, before its topic was subscribed to
		for _, s := range holding {
			s.holds--
			h.release(s)
		}
	}()

	h.listen(ctx, userTopic(a.user)) // first: joining a channel is told there
	read, epoch, err := h.store.Badges(ctx, a.user, r.limit)
	if err != nil {
		return err
	}

	// Those of channels that nobody here has listened to so far may have changed before it was listened.
	h.mu.Lock()
	var unheard []*stretch
	for _, b := range read {
		s := h.stretchOf(b.ChannelID)
		s.holds++
		holding = append(holding, s)
		if !s.heard {
			unheard = append(unheard, s)
		}
	}
	h.mu.Unlock()
	again := make(map[id.Channel]bool, len(unheard))
	var reread []readstate.Badge
	if len(unheard) > 0 {
		seats := make([]readstate.Seat, len(unheard))
		for i, s := range unheard {
			seats[i] = readstate.Seat{UserID: a.user, ChannelID: s.channel}
			again[s.channel] = true
		}
		h.hear(ctx, unheard)
		if reread, err = h.store.BadgesOf(ctx, seats, r.limit); err != nil {
			return err
		}
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accounts[a.user] != a {
		return errDropped
	}
	if !h.seen(epoch, r.epoch) {
		return nil // load tries again
	}
	delete(h.reload, a)
	there := make(map[id.Channel]bool, len(read))
	for _, b := range append(slices.DeleteFunc(read, func(b readstate.Badge) bool { return again[b.ChannelID] }), reread...) {
		there[b.ChannelID] = true
		if a.left[b.ChannelID] <= r.marks {
			a.keep(h, newHeld(b, r.limit))
		}
	}
	for channelID, s := range a.seats {
		if !there[channelID] { // they have left, or joined since
			h.markStale(s.seat(), false)
			a.remove(h, s)
		}
	}
	a.loaded, a.done = r.limit, r.number
	a.compared = time.Now().Add(-rand.N(h.config.ReconcileEvery / 2)) //nolint:gosec // to spread work, not to hide it
	if h.resumed != r.resumed {
		a.compared = time.Time{} // what was read may be from before the link came back
		wake(h.hurry)
	}
	for stream := range a.streams {
		stream.wakeUp()
	}
	return nil
}

// noteLeft has a read that is under way not bring back a seat that it may still show as taken.
func (h *Hub) noteLeft(a *account, channelID id.Channel) {
	if a.left != nil {
		h.marks++
		a.left[channelID] = h.marks
	}
}

// hear subscribes to the topics of some channels. Where that fails, they are tried again with the next that reads, and
// are right by reconciling meanwhile.
func (h *Hub) hear(ctx context.Context, unheard []*stretch) {
	topics := make([]Topic, len(unheard))
	for i, s := range unheard {
		topics[i] = channelTopic(s.channel)
	}
	heard := h.listen(ctx, topics...)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range unheard {
		s.heard = s.heard || heard
	}
}
