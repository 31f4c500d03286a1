package live

import (
	"slices"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

const (
	// kept is how many events of a channel are kept to bring a badge up to date that was read a moment ago.
	kept = 64
	// keptBytes bounds the bodies among those that are kept for readers of a channel's events.
	keptBytes = 4 << 20
	// maxEarly bounds the events that wait for those before them.
	maxEarly = 1024
)

// stretch is the latest of what happened in a channel: its events without a gap from after `from` up to `to`.
type stretch struct {
	channel   id.Channel
	seats     map[*seat]struct{}
	listeners map[*EventStream]struct{}
	holds     int  // those who are about to need it
	watched   int  // messages whose readers are watched: they need the topic, and no events
	heard     bool // the broker has confirmed the topic

	known     bool // where the channel stands
	from, to  id.Seq
	highWater id.Seq
	events    []*event // of from+1, ..., to
	bytes     int

	early    map[id.Seq]*event // came before those before them
	newest   id.Seq            // the largest version that is known to be
	deadline time.Time         // when the gap up to newest is given up
	gapped   bool              // it is among the hub's gaps
}

func newStretch(channel id.Channel) *stretch {
	return &stretch{channel: channel, seats: make(map[*seat]struct{}), listeners: make(map[*EventStream]struct{})}
}

// reset forgets where the channel stands.
func (s *stretch) reset() {
	*s = stretch{channel: s.channel, seats: s.seats, listeners: s.listeners, holds: s.holds, watched: s.watched, heard: s.heard}
}

// receive takes in an event that others may come before.
func (s *stretch) receive(h *Hub, e *event) {
	if !s.known && s.holds == 0 && len(s.listeners) == 0 {
		return // nobody is going to say where the channel stands
	}
	if s.known && e.Version <= s.to {
		return
	}
	if s.known && e.Version == s.to+1 {
		s.advance(h, e)
		s.catchUp(h)
		return
	}
	if len(s.early) < maxEarly {
		if s.early == nil {
			s.early = make(map[id.Seq]*event)
		}
		s.early[e.Version] = e
	}
	if s.known {
		s.suspect(h, e.Version)
	}
}

// learn takes in that the store has shown the channel at a version.
func (s *stretch) learn(h *Hub, version, highWater id.Seq) {
	s.highWater = max(s.highWater, highWater)
	if s.known {
		s.suspect(h, version)
		return
	}
	s.known, s.from, s.to = true, version, version
	for v := range s.early {
		if v <= version {
			delete(s.early, v)
		} else {
			s.suspect(h, v)
		}
	}
	s.catchUp(h)
}

// suspect has the gap up to a version closed, if it has not closed by itself in a moment.
func (s *stretch) suspect(h *Hub, version id.Seq) {
	if version <= s.to {
		return
	}
	if s.newest <= s.to { // there was no gap
		s.deadline = time.Now().Add(h.config.Settle)
	}
	s.newest = max(s.newest, version)
	if !s.gapped {
		s.gapped = true
		h.gaps = append(h.gaps, s)
		wake(h.mend)
	}
}

// catchUp works in the events that had to wait.
func (s *stretch) catchUp(h *Hub) {
	for len(s.early) > 0 {
		e := s.early[s.to+1]
		if e == nil {
			return
		}
		delete(s.early, e.Version)
		s.advance(h, e)
	}
	s.early = nil
}

// advance works the next event into every copy.
func (s *stretch) advance(h *Hub, e *event) {
	s.to = e.Version
	s.keep(e)
	for _, user := range e.Left {
		if a := h.accounts[user]; a != nil {
			h.noteLeft(a, s.channel)
		}
	}
	for seat := range s.seats {
		seat.advance(h, e)
	}
	for listener := range s.listeners {
		listener.wakeUp()
	}
}

// keep appends an event, and lets the oldest go.
func (s *stretch) keep(e *event) {
	if e.Kind == sent {
		s.highWater = max(s.highWater, e.Seq)
	}
	most := kept
	switch {
	case len(s.listeners) > 0:
		most = MaxLag
	case e.Message != nil: // which nobody is going to read
		light := *e
		light.Message = nil
		e = &light
	}
	s.events = append(s.events, e)
	s.bytes += e.size()
	for len(s.events) > most || s.bytes > keptBytes {
		s.bytes -= s.events[0].size()
		s.events[0] = nil
		s.events = s.events[1:]
		s.from++
	}
}

// after returns the event that follows a version, and nil where the stretch has none or does not reach back so far.
func (s *stretch) after(version id.Seq) *event {
	if version < s.from || version >= s.to {
		return nil
	}
	return s.events[version-s.from]
}

// giveUp jumps over a gap: what happened in it is read from the store.
func (s *stretch) giveUp(h *Hub) {
	h.counters.gaps.Add(1)
	s.from, s.to, s.events, s.bytes, s.early = s.newest, s.newest, nil, 0, nil
	for seat := range s.seats {
		if seat.held.HeadVersion < s.to {
			h.markStale(seat.seat(), false)
		}
	}
	for listener := range s.listeners {
		listener.wakeUp()
	}
}

// replay brings a badge up to a later version of the head, and fails where the stretch does not hold what is between.
func (s *stretch) replay(b held, to id.Seq) (held, bool) {
	if !s.known || to > s.to {
		return b, false
	}
	for b.HeadVersion < to {
		e := s.after(b.HeadVersion)
		if e == nil {
			return b, false
		}
		var followed bool
		if b, followed = b.follow(e); !followed {
			return b, false
		}
	}
	return b, true
}

// leftSince reports whether a person has left since a version, as far as the stretch reaches back.
func (s *stretch) leftSince(user id.User, version id.Seq) bool {
	for _, e := range s.events {
		if e.Version > version && slices.Contains(e.Left, user) {
			return true
		}
	}
	return false
}

// size is about how much an event's message takes.
func (e *event) size() int {
	if e.Message == nil {
		return 0
	}
	return len(e.Message.Body)
}

// seat is a person's place in a channel, with the copy of its badge.
type seat struct {
	account *account
	channel *stretch
	held    held
}

func (s *seat) seat() readstate.Seat {
	return readstate.Seat{UserID: s.account.user, ChannelID: s.channel.channel}
}

// advance works the next event of the channel into the copy.
func (s *seat) advance(h *Hub, e *event) {
	if slices.Contains(e.Left, s.account.user) {
		// A read that began before may still say that they are in.
		h.markStale(s.seat(), false)
		s.account.remove(h, s)
		return
	}
	switch {
	case s.held.HeadVersion >= e.Version:
		return
	case s.held.HeadVersion == e.Version-1:
		if next, ok := s.held.follow(e); ok {
			s.set(h, next)
			return
		}
	}
	if _, marked := h.stale[s.seat()]; !marked { // or what is read would be too old for ever in a busy channel
		h.markStale(s.seat(), false)
	}
}

// take keeps a badge that was read if it is later than the copy, whole, and reports whether the copy changed.
func (s *seat) take(h *Hub, b held) bool {
	defer s.channel.learn(h, b.HeadVersion, b.HighWaterSeq)
	have := s.held
	switch {
	case b.HeadVersion == have.HeadVersion && b.StateVersion == have.StateVersion:
		if !have.atLeast || b.Countable <= have.Countable && b.Naming <= have.Naming {
			return false
		}
	case b.HeadVersion >= have.HeadVersion && b.StateVersion >= have.StateVersion:
		if b.HeadVersion < s.channel.to {
			if later, ok := s.channel.replay(b, s.channel.to); ok {
				b = later
			} else {
				h.markStale(s.seat(), false)
			}
		}
	case b.StateVersion > have.StateVersion: // of a later cursor, but an earlier head
		var caughtUp bool
		if b, caughtUp = s.channel.replay(b, have.HeadVersion); !caughtUp {
			h.markStale(s.seat(), false)
			return false
		}
	default: // of a later head at most, which comes by itself
		if have.undercounted(s.account.limit) {
			h.markStale(s.seat(), false)
		}
		return false
	}
	if b.undercounted(s.account.limit) {
		h.markStale(s.seat(), false)
		return false
	}
	s.set(h, b)
	return true
}

// set replaces the copy.
func (s *seat) set(h *Hub, b held) {
	s.account.total.Remove(s.held.Badge)
	toggled := s.held.Muted != b.Muted
	s.held = b
	s.account.total.Add(b.Badge)
	s.account.changed(h, s.channel.channel, toggled)
}
