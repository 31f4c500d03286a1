package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

// acknowledgeEvery is how often what viewers were shown is acknowledged.
const acknowledgeEvery = time.Second

// NewlyUnread is what the hub needs of package newlyunread.
type NewlyUnread interface {
	Get(ctx context.Context, user id.User, first int) (newlyunread.Shown, error)
	Seen(ctx context.Context, user id.User, asOf *newlyunread.Position) error
}

// iconState is what the messages icon of a person shows, whom this process serves.
type iconState struct {
	user    id.User
	streams map[*IconStream]struct{}
	shown   newlyunread.Shown
	read    bool // shown is there
	changes int  // how often it was found to be old
	readAt  int  // changes when the read began that shown is of
}

// IconStream tells what the messages icon shows. What waits is the newest.
type IconStream struct {
	hub     *Hub
	icon    *iconState
	viewing bool

	// Guarded by the hub's mu.
	wake    func()
	closed  bool
	waits   bool
	written *newlyunread.Position // what Next took last, and was not acknowledged yet
}

// Icon subscribes to what the messages icon shows. The first is there when it returns. With viewing the messages screen
// is open: what its client was sent is acknowledged.
func (h *Hub) Icon(ctx context.Context, user id.User, viewing bool) (*IconStream, error) {
	if h.config.NewlyUnread == nil {
		return nil, errors.New("nothing is known of newly unread")
	}
	if err := h.awaitStore(ctx); err != nil {
		return nil, fmt.Errorf("subscribe to newly unread: %w", err)
	}
	s := &IconStream{hub: h, viewing: viewing, waits: true}
	h.mu.Lock()
	i := h.icons[user]
	if i == nil {
		i = &iconState{user: user, streams: make(map[*IconStream]struct{})}
		h.icons[user] = i
	}
	s.icon = i
	i.streams[s] = struct{}{}
	h.mu.Unlock()
	h.listen(ctx, userTopic(user)) // first: whatever changes from now on is told
	err := h.readIcon(ctx, i)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("subscribe to newly unread: %w", err)
	}
	return s, nil
}

// Notify has wake called whenever something begins to wait, and at once where it does. wake must not block, and is not
// to call the stream.
func (s *IconStream) Notify(wake func()) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.wake = wake
	s.wakeUp()
}

// Next takes what the icon shows, if that is another than before. It returns no error.
func (s *IconStream) Next() (newlyunread.Shown, bool, error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.closed {
		return newlyunread.Shown{}, false, nil
	}
	if s.viewing && s.written != nil { // whoever asks for the next has written the last
		s.hub.shown[s.icon.user] = max(s.hub.shown[s.icon.user], *s.written)
		s.written = nil
	}
	if !s.waits || !s.icon.read {
		return newlyunread.Shown{}, false, nil
	}
	s.waits = false
	shown := s.icon.shown
	if shown.Count() > 0 {
		s.written = &shown.AsOf
	}
	s.hub.counters.delivered.Add(1)
	return shown, true, nil
}

// Again has what Next took last wait again.
func (s *IconStream) Again() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.waits, s.written = true, nil
	s.wakeUp()
}

// Close ends the stream.
func (s *IconStream) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	delete(s.icon.streams, s)
	if len(s.icon.streams) == 0 {
		delete(h.icons, s.icon.user)
		delete(h.oldIcons, s.icon)
		h.releaseUser(s.icon.user)
	}
}

func (s *IconStream) wakeUp() {
	if s.wake != nil && s.waits && s.icon.read {
		s.wake()
	}
}

// markIcon has an icon read again. A read that has begun already does not count.
func (h *Hub) markIcon(i *iconState) {
	i.changes++
	h.oldIcons[i] = struct{}{}
	wake(h.mend)
}

// compareIcons has every icon read again: what is published of them has no versions that could be compared.
func (h *Hub) compareIcons() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range h.icons {
		h.markIcon(i)
	}
}

// readIcon reads what an icon shows, and tells the subscribers if it is another than before.
func (h *Hub) readIcon(ctx context.Context, i *iconState) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	h.mu.Lock()
	begun := i.changes
	h.mu.Unlock()
	shown, err := h.config.NewlyUnread.Get(ctx, i.user, newlyunread.DefaultFirst)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.icons[i.user] != i {
		return nil
	}
	if i.changes == begun {
		delete(h.oldIcons, i)
	}
	if i.read && begun < i.readAt { // a later read was quicker
		return nil
	}
	same := i.read && sameIcon(shown, i.shown)
	i.readAt, i.shown, i.read = begun, shown, true
	if same {
		return nil
	}
	for s := range i.streams {
		s.waits = true
		s.wakeUp()
	}
	return nil
}

// sameIcon reports whether two look alike. How far they go is of no interest to who looks.
func sameIcon(a, b newlyunread.Shown) bool {
	return a.Number == b.Number && slices.Equal(a.Senders, b.Senders) &&
		(a.AcknowledgedAt == nil) == (b.AcknowledgedAt == nil) &&
		(a.AcknowledgedAt == nil || a.AcknowledgedAt.Equal(*b.AcknowledgedAt))
}

// acknowledgeAll acknowledges what viewers were shown, until ctx ends and once more then. What cannot be acknowledged is
// tried again with what was shown since.
func (h *Hub) acknowledgeAll(ctx context.Context) {
	ticker := time.NewTicker(acknowledgeEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
		h.acknowledgeShown(context.WithoutCancel(ctx))
	}
}

// acknowledgeShown acknowledges what viewers were shown up to now.
func (h *Hub) acknowledgeShown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	h.mu.Lock()
	shown := h.shown
	h.shown = make(map[id.User]newlyunread.Position)
	h.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(mendReaders)
	for user, asOf := range shown {
		group.Go(func() error {
			h.acknowledge(ctx, user, asOf)
			return nil
		})
	}
	_ = group.Wait() // each looks after its own
}

func (h *Hub) acknowledge(ctx context.Context, user id.User, asOf newlyunread.Position) {
	err := h.config.NewlyUnread.Seen(ctx, user, &asOf)
	if err == nil {
		return
	}
	if fault.CodeOf(err) != fault.Unavailable {
		h.config.Logger.Error("what was shown is not acknowledged", "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown[user] = max(h.shown[user], asOf)
}
