package replay_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/replay"
)

func TestIconsShowTheTruth(t *testing.T) {
	t.Parallel()
	for _, small := range []int{1, 27, 100} { // nobody's, some and all messages in groups count
		config := iconic{small: small}.onWorkers(t, trace(t, 600))
		report, err := replay.Run(t.Context(), config)
		if err != nil || report.Wrong > 0 || report.Icons != 30 {
			t.Errorf("in groups up to %d: %v, %v\n%s", small, report, err, strings.Join(report.Details, "\n"))
		}
	}
}

func TestIconsDoNotChangeWhatPeopleDo(t *testing.T) {
	t.Parallel()
	path := trace(t, 200)
	with, err := replay.Run(t.Context(), iconic{}.onWorkers(t, path))
	if err != nil {
		t.Fatal(err)
	}
	without, err := replay.Run(t.Context(), onDatabase(t, path))
	if err != nil {
		t.Fatal(err)
	}
	with.Icons = 0
	if with.String() != without.String() {
		t.Errorf("with icons %v, and without %v", with, without)
	}
}

func TestWrongIconsAreFound(t *testing.T) {
	t.Parallel()
	path := trace(t, 600)
	for name, test := range map[string]struct {
		iconic
		want string // in one of the details
	}{
		"a larger group counts": {iconic{small: 100, assumed: 3}, "who has not written to them since"},
		"a smaller one":         {iconic{small: 3, assumed: 100}, "does not show person"},
		"nobody works":          {iconic{idle: true}, "messages still wait"},
		"nobody has muted":      {iconic{unmuted: true}, "who has not written to them since"},
		"one is left out": {iconic{shown: func(_ id.User, s *newlyunread.Shown) {
			if n := len(s.Senders); n > 1 && n < 99 {
				s.Senders = s.Senders[1:]
				s.Number.Count--
			}
		}}, "does not show person"},
		"one is the person": {iconic{shown: func(user id.User, s *newlyunread.Shown) {
			if len(s.Senders) > 0 {
				s.Senders[0].UserID = user
			}
		}}, "shows themselves"},
		"the oldest is first": {iconic{shown: func(_ id.User, s *newlyunread.Shown) { slices.Reverse(s.Senders) }}, "out of order"},
		"the oldest is first, as if it were newest": {iconic{shown: func(_ id.User, s *newlyunread.Shown) {
			for i, j := 0, len(s.Senders)-1; i < j; i, j = i+1, j-1 {
				s.Senders[i].UserID, s.Senders[j].UserID = s.Senders[j].UserID, s.Senders[i].UserID
			}
		}}, "below one who wrote before"},
		"the number is one more": {iconic{shown: func(_ id.User, s *newlyunread.Shown) { s.Number.Count++ }}, " people"},
		"an acknowledge is lost": {iconic{acknowledged: func(*newlyunread.Position) (*newlyunread.Position, bool) { return nil, false }}, "when all is acknowledged"},
		"one covers all": {iconic{acknowledged: func(*newlyunread.Position) (*newlyunread.Position, bool) {
			return new(newlyunread.Position(1 << 62)), true
		}}, "does not show person"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := test.onWorkers(t, path)
			if test.idle {
				config.Patience = 200 * time.Millisecond
			}
			report, err := replay.Run(t.Context(), config)
			if err != nil || report.Wrong == 0 {
				t.Fatalf("%v, %v, %q", report, err, report.Details)
			}
			if !strings.Contains(strings.Join(report.Details, "\n"), test.want) {
				t.Errorf("it tells %q, want %q", report.Details, test.want)
			}
		})
	}
}

// iconic is a replay with two workers, and what is wrong with it.
type iconic struct {
	small, assumed int // the largest group in which every message counts, and what the replay takes it for
	idle           bool
	unmuted        bool // nobody is taken to have muted
	shown          func(id.User, *newlyunread.Shown)
	acknowledged   func(*newlyunread.Position) (asOf *newlyunread.Position, done bool)
}

func (ic iconic) onWorkers(t *testing.T, path string) replay.Config {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Config{
		URL: pgtest.NewDatabase(t), MaxConnections: 8, NewlyUnreadMaxMembers: ic.small,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
		store.Close()
	})
	for range 2 {
		worker := newlyunread.NewWorker(newlyunread.WorkerConfig{Queue: store, Logger: slog.New(slog.DiscardHandler)})
		if !ic.idle {
			running.Go(func() {
				if err := worker.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
	readStates := readstate.New(store, nil)
	config := replay.Config{
		File: path, Seed: 1, Channels: channel.NewChannels(store, readStates, nil), ReadStates: readStates,
		NewlyUnread: &brokenIcons{NewlyUnread: newlyunread.New(newlyunread.Config{Store: store}), iconic: ic}, Queue: store,
		SmallGroup: max(ic.assumed, ic.small),
	}
	if ic.assumed > 0 {
		config.SmallGroup = ic.assumed
	}
	if ic.unmuted {
		config.ReadStates = unmuted{readStates}
	}
	return config
}

// brokenIcons is the real thing but for what a test breaks.
type brokenIcons struct {
	replay.NewlyUnread
	iconic
}

func (b *brokenIcons) Get(ctx context.Context, user id.User, first int) (newlyunread.Shown, error) {
	shown, err := b.NewlyUnread.Get(ctx, user, first)
	if b.shown != nil {
		b.shown(user, &shown)
	}
	return shown, err
}

func (b *brokenIcons) Acknowledge(ctx context.Context, user id.User, asOf *newlyunread.Position, first int) (newlyunread.Shown, error) {
	if b.acknowledged != nil {
		changed, done := b.acknowledged(asOf)
		if !done {
			return b.Get(ctx, user, first)
		}
		asOf = changed
	}
	return b.NewlyUnread.Acknowledge(ctx, user, asOf, first)
}

// unmuted forgets to mute.
type unmuted struct{ replay.ReadStates }

func (u unmuted) SetMuted(ctx context.Context, user id.User, channelID id.Channel, muted bool, limit int) (readstate.Badge, error) {
	badge, err := u.ReadStates.SetMuted(ctx, user, channelID, false, limit)
	badge.Muted = muted
	return badge, err
}
