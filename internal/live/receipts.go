package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
)

// maxPassed bounds what is remembered of those who read while a watched message is read from the store. With more, it is
// read once more.
const maxPassed = 1000

// Receipts is what the hub needs of package receipt.
type Receipts interface {
	// Watch is as receipt.Store has it.
	Watch(ctx context.Context, channel id.Channel, seq id.Seq, viewers []id.User) (receipt.Watched, error)
}

var _ receipt.Announcer = (*Hub)(nil)

// watched is a message whose readers somebody watches here. Who has yet to read is a bitmap: a publication of somebody
// who has read on takes their bit away, and asks nobody. That a member has read is never undone, so it does no harm if a
// publication comes late or twice, or if what it says was read from the store already.
type watched struct {
	channel id.Channel
	seq     id.Seq
	stretch *stretch      // who sends and who leaves is told there
	reading chan struct{} // holds one while a read is under way

	// Guarded by the hub's mu.
	streams  map[*ReceiptStream]struct{}
	known    bool // what follows is there
	audience int
	unread   receipt.Bitmap
	left     int     // how many are in unread
	changes  int     // how often it was found to be old
	busy     bool    // a read is under way
	passed   []int32 // who was told of meanwhile
}

// ReceiptStream tells who has read a message. What waits is the newest.
type ReceiptStream struct {
	hub     *Hub
	user    id.User
	watched *watched

	// Guarded by the hub's mu.
	wake     func()
	closed   bool
	admitted bool // it was read what they may see
	sight    receipt.Sight
	waits    bool
}

// Receipt subscribes to who has read a message. The first is there when it returns. It is NOT_FOUND where there is no such
// message for them.
func (h *Hub) Receipt(ctx context.Context, user id.User, channelID id.Channel, seq id.Seq) (*ReceiptStream, error) {
	if h.config.Receipts == nil {
		return nil, errors.New("nothing is known of receipts")
	}
	if err := h.awaitStore(ctx); err != nil {
		return nil, fmt.Errorf("subscribe to a receipt: %w", err)
	}
	s := &ReceiptStream{hub: h, user: user, waits: true}
	h.mu.Lock()
	w := h.receipts[channelID][seq]
	if w == nil {
		w = &watched{
			channel: channelID, seq: seq, stretch: h.stretchOf(channelID),
			reading: make(chan struct{}, 1), streams: make(map[*ReceiptStream]struct{}),
		}
		w.stretch.watched++
		if h.receipts[channelID] == nil {
			h.receipts[channelID] = make(map[id.Seq]*watched)
		}
		h.receipts[channelID][seq] = w
	}
	s.watched = w
	w.streams[s] = struct{}{}
	heard := w.stretch.heard
	h.mu.Unlock()
	h.listen(ctx, receiptsTopic(channelID)) // first: whatever changes from now on is told
	if !heard {
		h.hear(ctx, []*stretch{w.stretch})
	}
	err := h.readReceipt(ctx, w, s)
	if err == nil {
		h.mu.Lock()
		err = s.sight.Fault()
		h.mu.Unlock()
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("subscribe to a receipt: %w", err)
	}
	return s, nil
}

// Notify has wake called whenever something begins to wait, and at once where it does. wake must not block, and is not
// to call the stream.
func (s *ReceiptStream) Notify(wake func()) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.wake = wake
	s.wakeUp()
}

// Next takes where the message stands, if that is another than before. It fails with NOT_FOUND where the viewer is a
// member no more.
func (s *ReceiptStream) Next() (receipt.Receipt, bool, error) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	w := s.watched
	if s.closed || !s.waits || !w.known || !s.admitted {
		return receipt.Receipt{}, false, nil
	}
	if err := s.sight.Fault(); err != nil {
		return receipt.Receipt{}, false, err
	}
	s.waits = false
	told := receipt.Receipt{ChannelID: w.channel, Seq: w.seq}
	if s.sight == receipt.Full {
		told.AudienceCount, told.ReadCount = w.audience, w.audience-w.left
	}
	s.hub.counters.delivered.Add(1)
	return told, true, nil
}

// Again has what Next took last wait again.
func (s *ReceiptStream) Again() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.tell()
}

// Close ends the stream.
func (s *ReceiptStream) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	w := s.watched
	delete(w.streams, s)
	if len(w.streams) > 0 {
		return
	}
	delete(h.oldReceipts, w)
	delete(h.receipts[w.channel], w.seq)
	w.stretch.watched--
	h.release(w.stretch)
	if len(h.receipts[w.channel]) == 0 {
		delete(h.receipts, w.channel)
		h.broker.Unsubscribe(receiptsTopic(w.channel))
	}
}

// tell has a stream tell where the message stands.
func (s *ReceiptStream) tell() {
	s.waits = true
	s.wakeUp()
}

func (s *ReceiptStream) wakeUp() {
	if s.wake != nil && s.waits && s.watched.known && s.admitted {
		s.wake()
	}
}

// announceRead tells those who watch a channel's messages how far somebody has read there.
func (h *Hub) announceRead(b readstate.Badge) {
	h.announce(&announcement{Reader: &reader{Channel: b.ChannelID, Member: int32(b.MemberIndex), UpTo: b.ReceiptSeq}}) //nolint:gosec // it has 32 bits
}

// SharingChanged implements receipt.Announcer.
func (h *Hub) SharingChanged(channels []id.Channel) {
	for _, channelID := range channels {
		h.announce(&announcement{Reader: &reader{Channel: channelID, Others: true}})
	}
}

// happened works in what happened in a channel: who sends has read, and who leaves is in no audience any more. Who joins is
// in those of later messages alone.
func (h *Hub) happened(e *event) {
	switch {
	case e.Kind == sent:
		h.readOn(&reader{Channel: e.Channel, Member: int32(e.Badge.MemberIndex), UpTo: e.Badge.ReceiptSeq}) //nolint:gosec // it has 32 bits
	case e.Kind == members && len(e.Left) > 0:
		h.readOn(&reader{Channel: e.Channel, Others: true})
	}
}

// readOn works in what was told of a reader.
func (h *Hub) readOn(r *reader) {
	for seq, w := range h.receipts[r.Channel] {
		switch {
		case r.Others:
			h.markReceipt(w)
		case seq <= r.UpTo:
			w.pass(h, r.Member)
		}
	}
}

// pass says that a member has read the message.
func (w *watched) pass(h *Hub, member int32) {
	switch {
	case !w.busy:
	case len(w.passed) < maxPassed:
		w.passed = append(w.passed, member)
	default:
		h.markReceipt(w)
	}
	if w.unread.Remove(int(member)) {
		w.left--
		w.changed()
	}
}

// changed tells those who see it that it is another than before.
func (w *watched) changed() {
	for s := range w.streams {
		if s.sight == receipt.Full {
			s.tell()
		}
	}
}

// markReceipt has a watched message read again. A read that has begun already does not count.
func (h *Hub) markReceipt(w *watched) {
	w.changes++
	h.oldReceipts[w] = struct{}{}
	wake(h.mend)
}

// compareReceipts has every watched message read again: publications of them have no versions that could be compared.
func (h *Hub) compareReceipts() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.eachWatched(h.markReceipt)
}

// forgetReceipts drops what is held of another store.
func (h *Hub) forgetReceipts() {
	h.eachWatched(func(w *watched) {
		w.known, w.unread, w.left = false, nil, 0
		h.markReceipt(w)
	})
}

func (h *Hub) eachWatched(f func(*watched)) {
	for _, messages := range h.receipts {
		for _, w := range messages {
			f(w)
		}
	}
}

// readReceipt reads where a watched message stands, and tells the subscribers if that is another than before. For a
// subscriber who waits for it, one that another has begun since is as good.
func (h *Hub) readReceipt(ctx context.Context, w *watched, waiting *ReceiptStream) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	select {
	case w.reading <- struct{}{}:
	case <-ctx.Done():
		return fault.NotAvailable(context.Cause(ctx))
	}
	defer func() { <-w.reading }()
	h.mu.Lock()
	if waiting != nil && waiting.admitted {
		h.mu.Unlock()
		return nil
	}
	begun, epoch := w.changes, h.epoch
	asked := make([]*ReceiptStream, 0, len(w.streams))
	viewers := make(map[id.User]struct{}, len(w.streams))
	for s := range w.streams {
		asked = append(asked, s)
		viewers[s.user] = struct{}{}
	}
	w.busy, w.passed = true, nil
	h.mu.Unlock()
	found, err := h.config.Receipts.Watch(ctx, w.channel, w.seq, keys(viewers))
	h.mu.Lock()
	defer h.mu.Unlock()
	passed := w.passed
	w.busy, w.passed = false, nil
	if err != nil {
		return err
	}
	if h.epoch != epoch {
		if waiting != nil {
			return fault.NotAvailable(errors.New("the store has changed meanwhile"))
		}
		return nil
	}
	if w.changes == begun {
		delete(h.oldReceipts, w)
	}
	for _, member := range passed {
		found.Unread.Remove(int(member))
	}
	same := w.known && w.audience == found.AudienceCount && bytes.Equal(w.unread, found.Unread)
	w.known, w.audience, w.unread, w.left = true, found.AudienceCount, found.Unread, found.Unread.Count()
	for _, s := range asked {
		if sight := found.Sights[s.user]; !s.admitted || sight != s.sight {
			s.admitted, s.sight = true, sight
			s.tell()
		}
	}
	if !same {
		w.changed()
	}
	for s := range w.streams { // what waits could not be taken while nothing was known
		s.wakeUp()
	}
	return nil
}

func keys[K comparable](set map[K]struct{}) []K {
	list := make([]K, 0, len(set))
	for k := range set {
		list = append(list, k)
	}
	return list
}
