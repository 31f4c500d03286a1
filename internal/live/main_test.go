package live_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	anna id.User = iota + 1
	ben
	cleo
)

// patience bounds every wait for something that is sure to come.
const patience = 30 * time.Second

// engines are what processes share.
type engines struct {
	t        *testing.T
	database string
	redis    *redistest.Server
}

func newEngines(t *testing.T) engines {
	t.Helper()
	return engines{t: t, database: pgtest.NewDatabase(t), redis: redistest.New(t)}
}

// process is what one process of Tidemark does.
type process struct {
	t          *testing.T
	store      *postgres.Store
	hub        *live.Hub
	channels   *channel.Channels
	readStates *readstate.ReadStates
	icons      *newlyunread.NewlyUnread
	receipts   *receipt.Receipts
}

// start runs a process. between, if not nil, stands between the hub and its broker.
func (e engines) start(config live.Config, between func(live.Broker) live.Broker) *process {
	e.t.Helper()
	store, err := postgres.Open(e.t.Context(), postgres.Config{URL: e.database})
	if err != nil {
		e.t.Fatal(err)
	}
	client, err := redis.Open(e.redis.URL())
	if err != nil {
		e.t.Fatal(err)
	}
	config.Logger = slog.New(slog.DiscardHandler)
	var broker live.Broker = redis.NewBroker(client, redis.BrokerConfig{
		ProbeEvery: 50 * time.Millisecond, ProbeWithin: 500 * time.Millisecond, Logger: config.Logger,
	})
	if between != nil {
		broker = between(broker)
	}
	past := delivery.New(store, readstate.New(store, nil), delivery.DefaultMaxGap)
	copies := redis.NewNewlyUnread(client)
	p := &process{t: e.t, store: store, icons: newlyunread.New(newlyunread.Config{Store: store, Projection: copies, Logger: config.Logger})}
	config.NewlyUnread, config.Receipts = p.icons, receipt.New(store, nil)
	p.hub = live.NewHub(store, past, broker, config)
	p.icons.Announcer, p.receipts = p.hub, receipt.New(store, p.hub)
	p.readStates = readstate.New(store, p.hub)
	p.channels = channel.NewChannels(store, p.readStates, p.hub)
	worker := newlyunread.NewWorker(newlyunread.WorkerConfig{Queue: store, Projection: copies, Announcer: p.hub, Logger: config.Logger})

	ctx, stop := context.WithCancel(context.WithoutCancel(e.t.Context()))
	ended := make(chan error, 1)
	worked := make(chan error, 1)
	go func() { ended <- p.hub.Run(ctx) }()
	go func() { worked <- worker.Run(ctx) }()
	e.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			e.t.Errorf("the hub: %v", err)
		}
		if err := <-worked; err != nil {
			e.t.Errorf("the worker: %v", err)
		}
		_ = client.Close()
		store.Close()
	})
	eventually(e.t, "the link is up", func() bool { return p.hub.Linked() })
	return p
}

// group makes a group of its creator and others.
func (p *process) group(creator id.User, others ...id.User) id.Channel {
	p.t.Helper()
	made, err := p.channels.Create(p.t.Context(), person.Viewer{ID: creator}, channel.New{Kind: channel.Group, Members: others})
	if err != nil {
		p.t.Fatal(err)
	}
	return made.ID
}

func (p *process) send(sender id.User, to id.Channel, mentions ...id.User) channel.Sent {
	p.t.Helper()
	draft := channel.Draft{ChannelID: to, Body: "hello", Mentions: mentions}
	sent, err := p.channels.Send(p.t.Context(), person.Viewer{ID: sender}, draft, readstate.DefaultCap)
	if err != nil {
		p.t.Error(err)
	}
	return sent
}

func (p *process) read(who id.User, in id.Channel, upTo id.Seq) {
	p.t.Helper()
	_, err := p.readStates.MarkRead(p.t.Context(), who, "", readstate.Cursor{ChannelID: in, UpToSeq: upTo}, readstate.DefaultCap)
	if err != nil {
		p.t.Error(err)
	}
}

func (p *process) mute(who id.User, in id.Channel, muted bool) {
	p.t.Helper()
	if _, err := p.readStates.SetMuted(p.t.Context(), who, in, muted, readstate.DefaultCap); err != nil {
		p.t.Error(err)
	}
}

func (p *process) delete(sender id.User, from id.Channel, seq id.Seq) {
	p.t.Helper()
	if _, err := p.channels.Delete(p.t.Context(), person.Viewer{ID: sender}, from, seq); err != nil {
		p.t.Error(err)
	}
}

func (p *process) leave(who id.User, from id.Channel) {
	p.t.Helper()
	if _, err := p.channels.RemoveMember(p.t.Context(), person.Viewer{ID: who}, from, who); err != nil {
		p.t.Error(err)
	}
}

func (p *process) add(to id.Channel, by id.User, users ...id.User) {
	p.t.Helper()
	if _, err := p.channels.AddMembers(p.t.Context(), person.Viewer{ID: by}, to, users); err != nil {
		p.t.Error(err)
	}
}

// screen is a client that keeps the badges that it is told of, as clients are to do.
type screen struct {
	t      *testing.T
	who    id.User
	stream *live.BadgeStream
	woken  chan struct{}
	badges map[id.Channel]readstate.Badge
	total  readstate.Total
	store  string
	events int
}

// watch opens a screen, which shows nothing before it is looked at.
func (p *process) watch(who id.User, watch live.Watch) *screen {
	p.t.Helper()
	if watch.Cap == 0 {
		watch.Cap = readstate.DefaultCap
	}
	stream, err := p.hub.Badges(p.t.Context(), who, watch)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &screen{t: p.t, who: who, stream: stream, woken: make(chan struct{}, 1), badges: make(map[id.Channel]readstate.Badge)}
	p.t.Cleanup(stream.Close)
	stream.Notify(func() {
		select {
		case s.woken <- struct{}{}:
		default:
		}
	})
	return s
}

// look takes in all that waits.
func (s *screen) look() {
	s.t.Helper()
	for {
		change, some, err := s.stream.Next()
		if err != nil {
			s.t.Errorf("the stream: %v", err)
		}
		if !some {
			return
		}
		s.take(change)
	}
}

func (s *screen) take(change live.BadgeChange) {
	s.t.Helper()
	s.events++
	if change.StoreEpoch != s.store && !change.Snapshot {
		s.t.Errorf("another store, and no snapshot: %+v", change)
	}
	if change.Snapshot {
		clear(s.badges)
	}
	s.store, s.total = change.StoreEpoch, change.Total
	for _, b := range change.Badges {
		if have, ok := s.badges[b.ChannelID]; ok && have.Version() > b.Version() {
			s.t.Errorf("version %d after %d of %+v", b.Version(), have.Version(), b)
		}
		s.badges[b.ChannelID] = b
	}
	for _, gone := range change.RemovedChannelIDs {
		delete(s.badges, gone)
	}
}

// await looks until the screen is as it must be.
func (s *screen) await(what string, ok func() bool) {
	s.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		s.look()
		if ok() {
			return
		}
		select {
		case <-s.woken:
		case <-timeout.C:
			s.t.Fatalf("not so after %v: %s; there is %+v, total %+v", patience, what, s.badges, s.total)
		}
	}
}

// truth is what the store says.
func (p *process) truth(who id.User, includeMuted bool) (map[id.Channel]readstate.Badge, readstate.Total) {
	p.t.Helper()
	page, err := p.readStates.List(p.t.Context(), who, readstate.Filter{First: readstate.MaxPage, IncludeMuted: includeMuted, Cap: readstate.MaxCap})
	if err != nil {
		p.t.Fatal(err)
	}
	badges := make(map[id.Channel]readstate.Badge, len(page.Badges))
	for _, b := range page.Badges {
		badges[b.ChannelID] = b
	}
	return badges, page.Total
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); {
		if time.Since(began) > patience {
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}
