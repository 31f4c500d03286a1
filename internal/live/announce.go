package live

import (
	"context"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

const (
	// outboxSize bounds the announcements that wait. One that finds it full is not told: copies are found to lack it.
	outboxSize = 8192
	// wireSize bounds what waits for the broker, which may hang for a moment. The same holds.
	wireSize = 8192
	// batchSize bounds the publications that are handed to the broker at once.
	batchSize = 256
	// publishTimeout bounds the handing over.
	publishTimeout = 500 * time.Millisecond
)

// BadgesRead implements readstate.Announcer.
func (h *Hub) BadgesRead(read []readstate.Badge, limit int) {
	h.announce(&announcement{Badges: &badges{Badges: read, Limit: limit}})
	for _, b := range read {
		h.announceRead(b)
	}
}

// MessageSent implements channel.Announcer.
func (h *Hub) MessageSent(message channel.Message, badge readstate.Badge) {
	h.announce(&announcement{Event: &event{
		Kind: sent, Channel: message.ChannelID, Version: badge.HeadVersion, Seq: message.Seq, Sender: message.Sender.ID,
		Mentions: message.Mentions, Everyone: message.MentionsEveryone, Message: &message, Badge: &badge,
	}})
}

// MessageDeleted implements channel.Announcer.
func (h *Hub) MessageDeleted(message channel.Message, version id.Seq) {
	h.announce(&announcement{Event: &event{
		Kind: deleted, Channel: message.ChannelID, Version: version, Seq: message.Seq, Sender: message.Sender.ID,
		Mentions: message.Mentions, Everyone: message.MentionsEveryone,
	}})
}

// MembersChanged implements channel.Announcer.
func (h *Hub) MembersChanged(change channel.Change) {
	h.announce(&announcement{Event: &event{
		Kind: members, Channel: change.ChannelID, Version: change.Version, Left: change.Left,
	}})
	for _, user := range change.Joined {
		h.announce(&announcement{Look: &look{User: user, Channel: change.ChannelID}})
	}
}

// NewlyUnreadChanged implements newlyunread.Announcer.
func (h *Hub) NewlyUnreadChanged(users []id.User) {
	for _, user := range users {
		h.announce(&announcement{Icon: &icon{User: user}})
	}
}

func (h *Hub) announce(a *announcement) {
	if epoch := h.current.Load(); epoch != nil {
		a.Store = *epoch
	}
	select {
	case h.outbox <- a:
	default:
		h.counters.unpublished.Add(1)
	}
}

// announceAll works announcements into this process's own copies, in their order, and publishes them for the others.
func (h *Hub) announceAll(ctx context.Context) {
	shipped := make(chan struct{})
	defer func() { <-shipped }()
	defer close(h.wire)
	go func() {
		defer close(shipped)
		h.ship(context.WithoutCancel(ctx))
	}()
	if h.awaitStore(ctx) != nil {
		return // nothing can have been committed
	}
	for {
		select {
		case a := <-h.outbox:
			h.tell(a)
		case <-ctx.Done():
			for { // what is there already
				select {
				case a := <-h.outbox:
					h.tell(a)
				default:
					return
				}
			}
		}
	}
}

func (h *Hub) tell(a *announcement) {
	a.Origin = h.origin
	h.mu.Lock()
	if a.Store == "" { // it was announced before the store was known
		a.Store = h.epoch
	}
	outdated := a.Store != h.epoch
	if !outdated {
		h.receive(a)
	}
	h.mu.Unlock()
	if outdated { // what was committed there is gone
		return
	}
	payload, err := a.encode()
	if err != nil {
		h.config.Logger.Error("an announcement cannot be encoded", "error", err)
		return
	}
	select {
	case h.wire <- Publication{Topic: a.topic(), Payload: payload}:
	default:
		h.counters.unpublished.Add(1)
	}
}

// ship hands publications to the broker until the wire is closed.
func (h *Hub) ship(ctx context.Context) {
	for first := range h.wire {
		batch := append(make([]Publication, 0, batchSize), first)
		for more := true; more && len(batch) < batchSize; {
			select {
			case next, open := <-h.wire:
				if more = open; open {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		publishing, cancel := context.WithTimeout(ctx, publishTimeout)
		err := h.broker.Publish(publishing, batch...)
		cancel()
		if err != nil { // the broker's link is its own to tell of
			h.counters.unpublished.Add(int64(len(batch)))
			continue
		}
		h.counters.published.Add(int64(len(batch)))
	}
}

// Received implements Receiver.
func (h *Hub) Received(p Publication) {
	h.counters.received.Add(1)
	a, err := decode(p.Payload)
	if err != nil || !a.whole() { // of a newer version perhaps: what it changed will be missed, and read
		h.unreadable.Do(func() {
			h.config.Logger.Warn("a publication cannot be read, and maybe more", "topic", string(p.Topic), "error", err)
		})
		return
	}
	if a.Origin == h.origin {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.Store == h.epoch {
		h.receive(a)
		return
	}
	// It is of another installation that shares the broker, or else the copies are of a store that is no more: those
	// here, or the sender's.
	if _, known := h.foreign[a.Store]; !known && a.Store != "" {
		h.doubted = a.Store
		wake(h.doubt)
	}
}

// receive works an announcement into the copies.
func (h *Hub) receive(a *announcement) {
	switch {
	case a.Event != nil:
		if s := h.channels[a.Event.Channel]; s != nil {
			s.receive(h, a.Event)
		}
		h.happened(a.Event)
	case a.Badges != nil:
		for _, b := range a.Badges.Badges {
			h.offer(b, a.Badges.Limit)
		}
	case a.Look != nil:
		if h.accounts[a.Look.User] != nil {
			h.markStale(readstate.Seat{UserID: a.Look.User, ChannelID: a.Look.Channel}, false)
		}
	case a.Icon != nil:
		if screen := h.icons[a.Icon.User]; screen != nil {
			h.markIcon(screen)
		}
	case a.Reader != nil:
		h.readOn(a.Reader)
	}
}

// offer takes in a badge that was read a while ago.
func (h *Hub) offer(b readstate.Badge, limit int) {
	account := h.accounts[b.UserID]
	if account == nil {
		return
	}
	if s := account.seats[b.ChannelID]; s != nil {
		s.take(h, newHeld(b, limit))
		return
	}
	h.markStale(readstate.Seat{UserID: b.UserID, ChannelID: b.ChannelID}, false)
}
