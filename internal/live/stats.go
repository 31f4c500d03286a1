package live

import "sync/atomic"

// counters count what a hub has done since it was made, and what it has open.
type counters struct {
	badgeStreams, eventStreams                                                        atomic.Int64
	published, unpublished, received, delivered, conflated, gaps, reconciled, resumed atomic.Int64
}

// Stats is what a hub does, and has done since it was made.
type Stats struct {
	People       int // whose badges are held
	BadgeStreams int
	EventStreams int
	Watched      int   // messages whose readers somebody watches
	Published    int64 // publications that the broker took
	Unpublished  int64 // those that it did not, or that found a queue full
	Received     int64 // publications, one's own among them
	Delivered    int64 // changes and events that streams were asked for
	Conflated    int64 // badges that melted into one that waited already
	Gaps         int64 // missing events that were given up and read from the store
	Reconciled   int64 // badges that were found wrong by comparing with the store
	Resumed      int64 // times that the broker's link came back
}

// Linked reports whether the broker's link is proven to work. Without it, badges are right by comparing alone.
func (h *Hub) Linked() bool { return h.broker.Up() }

// Stats tells what the hub does.
func (h *Hub) Stats() Stats {
	s := Stats{
		BadgeStreams: int(h.counters.badgeStreams.Load()),
		EventStreams: int(h.counters.eventStreams.Load()),
		Published:    h.counters.published.Load(),
		Unpublished:  h.counters.unpublished.Load(),
		Received:     h.counters.received.Load(),
		Delivered:    h.counters.delivered.Load(),
		Conflated:    h.counters.conflated.Load(),
		Gaps:         h.counters.gaps.Load(),
		Reconciled:   h.counters.reconciled.Load(),
		Resumed:      h.counters.resumed.Load(),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.People = len(h.accounts)
	for _, messages := range h.receipts {
		s.Watched += len(messages)
	}
	return s
}
