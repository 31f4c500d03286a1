package replay_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
	"tidemark/internal/replay"
)

// never is a ReconcileEvery that does not come.
const never = time.Hour

func TestScreensShowTheTruth(t *testing.T) {
	t.Parallel()
	config := watched{}.onProcesses(t, trace(t, 600))
	config.Seed = 8 // with which some who watch have left a channel at the end
	var shown strings.Builder
	config.Progress = &shown
	report, err := replay.Run(t.Context(), config)
	if err != nil || report.Wrong > 0 {
		t.Errorf("%v, %v\n%s", report, err, strings.Join(report.Details, "\n"))
	}
	if got := report.String(); !regexp.MustCompile(`^600 messages, 30 people, 499 badges, 60 screens, 0 icons, 0 wrong$`).MatchString(got) {
		t.Errorf("the report is %q", got)
	}
	if got := shown.String(); !strings.Contains(got, "screens [##############################] 100%  60 of 60 ") {
		t.Errorf("the progress shown is %q", got)
	}
}

func TestScreensDoNotChangeWhatPeopleDo(t *testing.T) {
	t.Parallel()
	path := trace(t, 100)
	config := watched{}.onProcesses(t, path)
	with, err := replay.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	without, err := replay.Run(t.Context(), onDatabase(t, path))
	if err != nil {
		t.Fatal(err)
	}
	with.Screens = 0
	if with.String() != without.String() {
		t.Errorf("with screens %v, and without %v", with, without)
	}
}

func TestMoreScreensThanPeople(t *testing.T) {
	t.Parallel()
	config := watched{}.onProcesses(t, file(t, header+"0\t1\t1\t5\t\t2\n1\t1\t2\t5\t1\t\n"))
	config.Screens = 40
	if report, err := replay.Run(t.Context(), config); err != nil || report.Wrong > 0 || report.Screens != 40 {
		t.Errorf("%v, %v, %q", report, err, report.Details)
	}
	config.File = file(t, header)
	if report, err := replay.Run(t.Context(), config); err != nil || report.Screens != 0 {
		t.Errorf("of nothing: %v, %v", report, err)
	}
}

func TestWrongScreensAreFound(t *testing.T) {
	t.Parallel()
	path := trace(t, 100)
	for name, test := range map[string]struct {
		watched
		want string // of every screen that is wrong
	}{
		"nothing is announced":    {watched{silent: true, reconcile: never}, `^screen \d+, a (quick|slow|late|fickle) one of person \d+ on process [12]: `},
		"a process becomes deaf":  {watched{deafAfter: 50, reconcile: never}, `^screen \d+, .* on process 2: (channel \d+: .*|in total:).*; want `},
		"other channels are told": {watched{between: func(l *between) { l.watch.ChannelIDs = nil }}, `which it did not ask for$`},
		"muted ones are told or not": {
			watched{between: func(l *between) { l.watch.IncludeMuted = !l.watch.IncludeMuted }},
			`, which is muted$|: .* want .*, muted, newest \d+$`,
		},
		"the badges are another's": {
			watched{between: func(l *between) { l.user = 1 + l.user%30 }}, `which it did not ask for$|: no badge; want |in total: `,
		},
		"the first change is lost": {
			watched{between: func(l *between) { l.lost = true }}, `: it does not begin with a snapshot$|; want `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := test.onProcesses(t, path)
			config.Patience = 500 * time.Millisecond
			report, err := replay.Run(t.Context(), config)
			if err != nil || report.Wrong == 0 || report.Wrong > report.Screens {
				t.Fatalf("%v, %v, %q", report, err, report.Details)
			}
			for _, detail := range report.Details {
				if !regexp.MustCompile(test.want).MatchString(detail) {
					t.Errorf("it tells %q, want %s", detail, test.want)
				}
			}
		})
	}
}

func TestScreensThatHearNothingAreHealed(t *testing.T) {
	t.Parallel()
	config := watched{deafAfter: 50, reconcile: 200 * time.Millisecond}.onProcesses(t, trace(t, 100))
	if report, err := replay.Run(t.Context(), config); err != nil || report.Wrong > 0 {
		t.Errorf("%v, %v, %q", report, err, report.Details)
	}
}

func TestRefusedScreensEndTheRun(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, after := range map[string]int64{"the first": 1, "one that comes again": 65} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int64
			config := watched{between: func(l *between) {
				if opened.Add(1) >= after {
					l.err = refused
				}
			}}.onProcesses(t, trace(t, 600))
			report, err := replay.Run(t.Context(), config)
			if !errors.Is(err, refused) || !strings.HasPrefix(err.Error(), "replay: open screen ") {
				t.Errorf("%v, %v", report, err)
			}
		})
	}
}

func TestARunWithScreensCanBeCancelled(t *testing.T) {
	t.Parallel()
	path := trace(t, 200)
	for name, test := range map[string]watched{
		"while people act":   {},
		"while screens wait": {silent: true, reconcile: never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := test.onProcesses(t, path)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var sends atomic.Int64
			config.Channels = &brokenChannels{Channels: config.Channels, send: func() error {
				if sends.Add(1) == 50 && !test.silent {
					cancel()
				}
				return nil
			}}
			config.Progress = hook(func(line string) {
				if strings.HasPrefix(line, "replay [##############################]") {
					cancel()
				}
			})
			if report, err := replay.Run(ctx, config); !errors.Is(err, context.Canceled) || report.Wrong > 0 {
				t.Errorf("%v, %v, %q", report, err, report.Details)
			}
		})
	}
}

// hook is a writer that calls a function.
type hook func(string)

func (h hook) Write(p []byte) (int, error) {
	h(string(p))
	return len(p), nil
}

// watched is a replay with screens on two processes: one that writes, and one that only hears of it.
type watched struct {
	silent    bool           // nothing is announced
	deafAfter int64          // the second process hears nothing more after so many publications; 0 where it does
	reconcile time.Duration  // as live.Config has it
	between   func(*between) // changes how a screen subscribes
}

func (w watched) onProcesses(t *testing.T, path string) replay.Config {
	t.Helper()
	database, server := pgtest.NewDatabase(t), redistest.New(t)
	writing, store := w.start(t, database, server.URL(), 0)
	listening, _ := w.start(t, database, server.URL(), w.deafAfter)
	readStates := readstate.New(store, writing)
	channels := channel.NewChannels(store, readStates, writing)
	if w.silent {
		readStates = readstate.New(store, nil)
		channels = channel.NewChannels(store, readStates, nil)
	}
	config := replay.Config{
		File: path, Seed: 1, Channels: channels, ReadStates: readStates,
		Screens: 60, Processes: []replay.Live{writing, listening},
	}
	if w.between != nil {
		for i, process := range config.Processes {
			config.Processes[i] = &brokenLive{Live: process, between: w.between}
		}
	}
	return config
}

// start runs the hub of a process.
func (w watched) start(t *testing.T, database, redisURL string, deafAfter int64) (*live.Hub, *postgres.Store) {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: database, MaxConnections: 8})
	if err != nil {
		t.Fatal(err)
	}
	client, err := redis.Open(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	broker := &deafBroker{
		Broker: redis.NewBroker(client, redis.BrokerConfig{ProbeEvery: 50 * time.Millisecond, Logger: quiet}),
		after:  deafAfter, resumed: make(chan struct{}, 1),
	}
	past := delivery.New(store, readstate.New(store, nil), delivery.DefaultMaxGap)
	hub := live.NewHub(store, past, broker, live.Config{ReconcileEvery: w.reconcile, Logger: quiet})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, client.Close()); err != nil {
			t.Error(err)
		}
		store.Close()
	})
	select {
	case <-broker.resumed:
	case <-time.After(30 * time.Second):
		t.Fatal("the link to Redis is not up")
	}
	return hub, store
}

// deafBroker tells when its link is up, and receives only so many publications, if after is not 0.
type deafBroker struct {
	live.Broker
	after   int64
	resumed chan struct{}
}

func (b *deafBroker) Run(ctx context.Context, receiver live.Receiver) error {
	return b.Broker.Run(ctx, &deafReceiver{Receiver: receiver, broker: b})
}

type deafReceiver struct {
	live.Receiver
	broker   *deafBroker
	received int64
}

func (r *deafReceiver) Received(p live.Publication) {
	if r.received++; r.broker.after == 0 || r.received <= r.broker.after {
		r.Receiver.Received(p)
	}
}

func (r *deafReceiver) Resumed() {
	r.Receiver.Resumed()
	select {
	case r.broker.resumed <- struct{}{}:
	default:
	}
}

// between is what comes between a screen and its process.
type between struct {
	user  id.User
	watch live.Watch
	lost  bool // the first change
	err   error
}

// brokenLive is the real thing but for what a test breaks.
type brokenLive struct {
	replay.Live
	between func(*between)
}

func (l *brokenLive) Badges(ctx context.Context, user id.User, watch live.Watch) (*live.BadgeStream, error) {
	b := between{user: user, watch: watch}
	l.between(&b)
	if b.err != nil {
		return nil, b.err
	}
	stream, err := l.Live.Badges(ctx, b.user, b.watch)
	if err == nil && b.lost {
		_, _, err = stream.Next()
	}
	return stream, err
}
