package replay

import (
	"context"
	"fmt"
	"slices"

	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/readstate"
)

// habit is how a subscriber watches.
type habit int

const (
	quick  habit = iota // takes each change at once
	slow                // looks now and then
	late                // looks only at the end
	fickle              // takes each change at once, but comes and goes
	habits              // how many there are
)

func (h habit) String() string { return [habits]string{"quick", "slow", "late", "fickle"}[h] }

// screen shows a person's badges, and keeps them as the schema tells clients to. One goroutine at a time has it.
type screen struct {
	number  int
	user    id.User
	process int // from 1
	source  Live
	watch   live.Watch
	habit   habit

	every, phase int64         // after which messages it is its turn; never where every is 0
	returns      bool          // a fickle one: opens again at once, and not at its next turn
	due          chan struct{} // it is its turn
	woken        chan struct{} // there is something to look at
	stream       *live.BadgeStream

	begun  bool // with a snapshot
	epoch  string
	badges map[id.Channel]readstate.Badge
	total  readstate.Total
	newest map[id.Channel]id.Seq // the largest version that was ever shown
	fault  string                // the first thing that it must not have been told

	want      map[id.Channel]tally
	wantTotal total
}

func newScreen(user id.User) *screen {
	return &screen{
		user: user, due: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		badges: make(map[id.Channel]readstate.Badge), newest: make(map[id.Channel]id.Seq),
	}
}

func (s *screen) String() string {
	return fmt.Sprintf("screen %d, a %v one of person %d on process %d", s.number, s.habit, s.user, s.process)
}

// attend watches until ctx ends.
func (s *screen) attend(ctx context.Context) error {
	for err := s.open(ctx); ctx.Err() == nil; {
		if err != nil {
			return err
		}
		select {
		case <-s.woken:
			s.look()
		case <-s.due:
			err = s.turn(ctx)
		case <-ctx.Done():
		}
	}
	return nil
}

// turn does what it is time for.
func (s *screen) turn(ctx context.Context) error {
	switch {
	case s.habit != fickle:
		s.look()
		return nil
	case s.stream == nil:
		return s.open(ctx)
	}
	s.close()
	if s.returns {
		return s.open(ctx)
	}
	return nil
}

// open subscribes, with nothing on the screen.
func (s *screen) open(ctx context.Context) error {
	stream, err := s.source.Badges(ctx, s.user, s.watch)
	if err != nil {
		return fmt.Errorf("open %v: %w", s, err)
	}
	s.stream, s.begun, s.total = stream, false, readstate.Total{}
	clear(s.badges)
	if s.habit == quick || s.habit == fickle {
		stream.Notify(s.wake)
	}
	return nil
}

func (s *screen) close() {
	if s.stream != nil {
		s.stream.Close()
		s.stream = nil
	}
}

func (s *screen) wake() { wake(s.woken) }

// wake leaves a word for a goroutine that may be at work.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look takes all that waits.
func (s *screen) look() {
	for s.stream != nil {
		change, some, err := s.stream.Next()
		if err != nil {
			s.blame("the stream ends: %v", err)
		}
		if err != nil || !some {
			return
		}
		s.take(change)
	}
}

// take takes in a change: a snapshot is the whole, of a badge the larger version counts, and what is removed or, on
// most screens, muted goes.
func (s *screen) take(change live.BadgeChange) {
	switch {
	case change.Snapshot:
		clear(s.badges)
	case !s.begun:
		s.blame("it does not begin with a snapshot")
	case change.StoreEpoch != s.epoch:
		s.blame("the store is another one, and it gets no snapshot")
	}
	if change.StoreEpoch != s.epoch {
		clear(s.newest)
	}
	s.begun, s.epoch, s.total = true, change.StoreEpoch, change.Total
	for _, b := range change.Badges {
		if b.UserID != s.user || !s.watches(b.ChannelID) {
			s.blame("it is told of person %d in channel %d, which it did not ask for", b.UserID, b.ChannelID)
			continue
		}
		if change.Snapshot && b.Muted && !s.watch.IncludeMuted {
			s.blame("the snapshot has channel %d, which is muted", b.ChannelID)
		}
		version := b.Version()
		if newest := s.newest[b.ChannelID]; version < newest {
			s.blame("channel %d: version %d comes after version %d", b.ChannelID, version, newest)
			continue
		}
		s.newest[b.ChannelID] = version
		if b.Muted && !s.watch.IncludeMuted {
			delete(s.badges, b.ChannelID)
		} else {
			s.badges[b.ChannelID] = b
		}
	}
	for _, channelID := range change.RemovedChannelIDs {
		if !s.watches(channelID) {
			s.blame("it is told of channel %d, which it did not ask for", channelID)
		}
		delete(s.badges, channelID)
	}
}

func (s *screen) watches(channelID id.Channel) bool {
	return s.watch.ChannelIDs == nil || slices.Contains(s.watch.ChannelIDs, channelID)
}

func (s *screen) blame(format string, args ...any) {
	if s.fault == "" {
		s.fault = fmt.Sprintf(format, args...)
	}
}

// expect says what must be on the screen at the end, of all that the person must see.
func (s *screen) expect(badges map[id.Channel]tally, sum total) {
	s.want, s.wantTotal = make(map[id.Channel]tally), sum.to(s.watch.Cap)
	for channelID, t := range badges {
		if s.watches(channelID) && (s.watch.IncludeMuted || !t.muted) {
			s.want[channelID] = t.to(s.watch.Cap)
		}
	}
}

// settle takes changes until the screen shows what it must, or ctx ends. One that is closed is opened.
func (s *screen) settle(ctx context.Context) error {
	if s.stream == nil {
		if err := s.open(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if s.stream == nil {
		return nil
	}
	s.stream.Notify(s.wake)
	for s.look(); !s.settled(); s.look() {
		select {
		case <-s.woken:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// settled reports whether there is nothing to wait for.
func (s *screen) settled() bool { return s.fault != "" || s.wrong() == "" }

// wrong says what is wrong with the screen, if anything.
func (s *screen) wrong() string {
	if s.fault != "" {
		return s.fault
	}
	for channelID, want := range s.want {
		if got := s.shown(channelID); got != want {
			return fmt.Sprintf("channel %d: %v; want %v", channelID, got, want)
		}
	}
	for channelID := range s.badges {
		if _, wanted := s.want[channelID]; !wanted {
			return fmt.Sprintf("channel %d: %v; want %v", channelID, s.shown(channelID), tally{})
		}
	}
	if got := totalOf(s.total).to(s.watch.Cap); got != s.wantTotal {
		return fmt.Sprintf("in total: %v; want %v", got, s.wantTotal)
	}
	return ""
}

func (s *screen) shown(channelID id.Channel) tally {
	b, there := s.badges[channelID]
	if !there {
		return tally{}
	}
	return tallyOf(b).to(s.watch.Cap)
}
