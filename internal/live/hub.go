package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/readstate"
)

const (
	// MaxLag is how many events of a channel a reader may be behind. One that is further behind starts afresh.
	MaxLag = 1000
	// DefaultReconcile is how often each copy is compared with the store.
	DefaultReconcile = 30 * time.Second
	// defaultSettle is how long an event waits for those before it: longer than publications of one channel take to
	// come in order, and short enough for nobody to notice.
	defaultSettle = 100 * time.Millisecond
	// listenTimeout bounds the wait for the broker before a first read. Past it the copies are right by reconciling alone.
	listenTimeout = time.Second
	// storeTimeout bounds a read that nobody waits for.
	storeTimeout = 5 * time.Second
)

// Store is what the hub reads. Its errors are faults, or internal.
type Store interface {
	// Badges is as readstate.Store has it.
	Badges(ctx context.Context, user id.User, limit int) (badges []readstate.Badge, storeEpoch string, err error)
	// BadgesOf is as readstate.Store has it.
	BadgesOf(ctx context.Context, seats []readstate.Seat, limit int) ([]readstate.Badge, error)
	// Versions returns the versions of all badges of some people, in no particular order, and the store epoch.
	Versions(ctx context.Context, users []id.User) (versions []Version, storeEpoch string, err error)
	// HeadVersions returns the versions of some channels' heads.
	HeadVersions(ctx context.Context, channels []id.Channel) (map[id.Channel]id.Seq, error)
}

// Version says which badge is the newest of a seat.
type Version struct {
	readstate.Seat
	Head  id.Seq
	State id.Seq
}

// Log is a channel's past.
type Log interface {
	// Missed returns what a reader lacks of a channel, and NOT_FOUND where they are not in it.
	Missed(ctx context.Context, user id.User, channel id.Channel, held delivery.Held) (delivery.Missed, error)
}

// Config says how a hub works. Zero stands for the defaults named.
type Config struct {
	// ReconcileEvery is how often each copy is compared with the store: DefaultReconcile.
	ReconcileEvery time.Duration
	// Settle is how long an event waits for those before it: 100 ms.
	Settle time.Duration
	// NewlyUnread is what the messages icon shows. Nil: nobody can subscribe to it.
	NewlyUnread NewlyUnread
	// Receipts is who has read what. Nil: nobody can subscribe to it.
	Receipts Receipts
	// Logger: slog.Default.
	Logger *slog.Logger
}

// Hub tells the subscribers of one process what changes. It is safe for concurrent use.
type Hub struct {
	store      Store
	past       Log
	broker     Broker
	config     Config
	origin     string
	outbox     chan *announcement
	wire       chan Publication
	mend       chan struct{}          // woken where there is something to read from the store
	hurry      chan struct{}          // woken where all copies must be compared at once
	doubt      chan struct{}          // woken where the store may be another one
	known      chan struct{}          // closed when the store's epoch has been read
	current    atomic.Pointer[string] // epoch, for those who do not wait for mu; nil before it is known
	counters   counters
	unreadable sync.Once // to say so

	// mu guards what follows, and all of accounts, stretches, seats and streams. Whatever is not exported and takes no
	// context is called with it held, but for announce, tell, closeGaps and what only reads what never changes.
	mu       sync.Mutex
	epoch    string              // of the store; empty before the first read
	doubted  string              // an epoch that others publish in
	foreign  map[string]struct{} // epochs of others, which are none of ours
	accounts map[id.User]*account
	channels map[id.Channel]*stretch
	stale    map[readstate.Seat]mark // to be read from the store
	marks    uint64                  // how many marks were made
	resumed  uint64                  // how often the link came back
	gaps     []*stretch              // those with events that wait for others
	behind   map[*EventStream]struct{}
	reload   map[*account]struct{}
	icons    map[id.User]*iconState
	oldIcons map[*iconState]struct{}          // to be read again
	shown    map[id.User]newlyunread.Position // what viewers were shown, and is to be acknowledged

	receipts    map[id.Channel]map[id.Seq]*watched
	oldReceipts map[*watched]struct{} // to be read again
}

// mark says when, in the order of marks, a seat was found to be stale, and whether by comparing.
type mark struct {
	number     uint64
	reconciled bool
}

var (
	_ readstate.Announcer   = (*Hub)(nil)
	_ channel.Announcer     = (*Hub)(nil)
	_ newlyunread.Announcer = (*Hub)(nil)
	_ Receiver              = (*Hub)(nil)
)

// NewHub returns a hub. It does nothing before Run.
func NewHub(store Store, past Log, broker Broker, config Config) *Hub {
	config.ReconcileEvery = cmp.Or(config.ReconcileEvery, DefaultReconcile)
	config.Settle = cmp.Or(config.Settle, defaultSettle)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	return &Hub{
		store: store, past: past, broker: broker, config: config,
		origin:   rand.Text(),
		outbox:   make(chan *announcement, outboxSize),
		wire:     make(chan Publication, wireSize),
		mend:     make(chan struct{}, 1),
		hurry:    make(chan struct{}, 1),
		doubt:    make(chan struct{}, 1),
		foreign:  make(map[string]struct{}),
		known:    make(chan struct{}),
		accounts: make(map[id.User]*account),
		channels: make(map[id.Channel]*stretch),
		stale:    make(map[readstate.Seat]mark),
		behind:   make(map[*EventStream]struct{}),
		reload:   make(map[*account]struct{}),
		icons:    make(map[id.User]*iconState),
		oldIcons: make(map[*iconState]struct{}),
		shown:    make(map[id.User]newlyunread.Position),

		receipts:    make(map[id.Channel]map[id.Seq]*watched),
		oldReceipts: make(map[*watched]struct{}),
	}
}

// Run keeps the copies right until ctx ends, and what was announced until then goes out. It is called once, and
// streams are for the time while it runs.
func (h *Hub) Run(ctx context.Context) error {
	linked, unlink := context.WithCancel(context.WithoutCancel(ctx))
	var link, work sync.WaitGroup
	var broken error
	link.Go(func() { broken = h.broker.Run(linked, h) })
	work.Go(func() { h.announceAll(ctx) })
	work.Go(func() { h.mendAll(ctx) })
	work.Go(func() { h.reconcileAll(ctx) })
	work.Go(func() { h.acknowledgeAll(ctx) })
	work.Wait()
	unlink()
	link.Wait()
	return broken
}

// awaitStore returns when it is known which store there is. Before, no publication could be told from another store's.
func (h *Hub) awaitStore(ctx context.Context) error {
	select {
	case <-h.known:
		return nil
	case <-ctx.Done():
		return fault.NotAvailable(context.Cause(ctx))
	}
}

// listen returns whether all that is published on the topics from now on will be received.
func (h *Hub) listen(ctx context.Context, topics ...Topic) bool {
	ctx, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	return h.broker.Subscribe(ctx, topics...) == nil
}

// stretchOf returns the stretch of a channel's events that this process keeps. One that is neither used nor held goes with
// the next release.
func (h *Hub) stretchOf(channelID id.Channel) *stretch {
	s := h.channels[channelID]
	if s == nil {
		s = newStretch(channelID)
		h.channels[channelID] = s
	}
	return s
}

// release ends the stretch if nobody needs it any more. The broker is told under the lock: who needs it next asks
// after that.
func (h *Hub) release(s *stretch) {
	if len(s.seats) == 0 && len(s.listeners) == 0 && s.holds == 0 && s.watched == 0 && h.channels[s.channel] == s {
		delete(h.channels, s.channel)
		h.broker.Unsubscribe(channelTopic(s.channel))
	}
}

// markStale has a seat read from the store. A read that has begun already does not count.
func (h *Hub) markStale(seat readstate.Seat, reconciled bool) {
	h.marks++
	h.stale[seat] = mark{number: h.marks, reconciled: reconciled}
	wake(h.mend)
}

// seen takes in the store epoch that a read has found. begun is the one that the hub knew when the read began. It reports
// whether the read is good: not if the hub has learnt of another store since than the one that was read.
func (h *Hub) seen(epoch, begun string) bool {
	if epoch != h.epoch && h.epoch != begun {
		return false
	}
	h.storeChanged(epoch)
	return true
}

// storeChanged drops every copy: versions are given out again, so those that are held say nothing any more.
func (h *Hub) storeChanged(epoch string) {
	if h.epoch == epoch {
		return
	}
	known := h.epoch != ""
	h.epoch = epoch
	h.current.Store(&epoch)
	clear(h.foreign)
	if !known {
		close(h.known)
		return
	}
	h.config.Logger.Warn("the store is another one than before: all copies are read anew", "store", epoch)
	clear(h.stale)
	h.gaps = nil
	for _, s := range h.channels {
		s.reset()
		for listener := range s.listeners {
			if listener.open {
				h.fallBehind(listener)
			}
		}
	}
	for _, a := range h.accounts {
		a.forget(h)
		h.reload[a] = struct{}{}
	}
	for _, i := range h.icons {
		h.markIcon(i)
	}
	h.forgetReceipts()
	wake(h.mend)
}

// wake leaves a word for a goroutine that may be at work.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
