package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
)

const fewMembers = 3 // the largest group in which every message counts, here

// pipeline does by hand what workers do.
type pipeline struct {
	t      testing.TB
	store  *postgres.Store
	leases []newlyunread.Lease
}

// everyPartition is what a worker names that leaves nothing in doubt.
func everyPartition() (all []newlyunread.Partition) {
	for p := range newlyunread.Partition(65) {
		all = append(all, p-1)
	}
	return all
}

func newPipeline(t testing.TB, store *postgres.Store) *pipeline {
	t.Helper()
	leases, err := store.ClaimLeases(t.Context(), "by hand", 100, time.Hour)
	if err != nil || len(leases) != 65 {
		t.Fatalf("%d leases, %v", len(leases), err)
	}
	return &pipeline{t: t, store: store, leases: leases}
}

func (p *pipeline) relay(ctx context.Context) error {
	i := slices.IndexFunc(p.leases, func(l newlyunread.Lease) bool { return l.Partition == -1 })
	_, err := p.store.Relay(ctx, p.leases[i], 1000)
	return err
}

func (p *pipeline) project(ctx context.Context) error {
	for _, lease := range p.leases {
		if lease.Partition < 0 {
			continue
		}
		if _, err := p.store.Project(ctx, lease, 1000, newlyunread.RollCall{}); err != nil {
			return err
		}
	}
	return nil
}

// TestModelOfNewlyUnread does at random what people do, has the pipeline run in between, and compares what the icon shows
// with a reference that knows of messages alone.
func TestModelOfNewlyUnread(t *testing.T) {
	t.Parallel()
	d := openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t), NewlyUnreadMaxMembers: fewMembers})
	p := newPipeline(t, d.store)
	next := id.User(0)
	rapid.Check(t, func(r *rapid.T) {
		m := &iconModel{domain: d, pipeline: p, icons: newlyunread.New(newlyunread.Config{Store: d.store}), people: make(map[id.User]*reader)}
		for range 5 {
			next++
			m.ids = append(m.ids, next)
			m.people[next] = &reader{}
		}
		m.create(r)
		r.Repeat(map[string]func(*rapid.T){
			"":            func(*rapid.T) {},
			"create":      m.create,
			"send":        m.send,
			"send more":   m.send,
			"delete":      m.delete,
			"mute":        m.mute,
			"leave":       m.leave,
			"join":        m.join,
			"relay":       m.relay,
			"project":     m.project,
			"look":        m.look,
			"acknowledge": m.acknowledge,
		})
		m.relay(r)
		m.project(r)
		for _, who := range m.ids {
			m.compare(r, who)
		}
	})
}

// iconModel is the service and the reference, side by side.
type iconModel struct {
	*domain
	*pipeline
	icons  *newlyunread.NewlyUnread
	ids    []id.User
	people map[id.User]*reader
	groups []*group
	// What was sent and not relayed, and what was relayed and not projected.
	sent    []*post
	relayed []arriving
}

// reader is somebody, and who wrote to them in the order in which it arrived.
type reader struct {
	arrived      []id.User
	acknowledged int
	shown        []shownAt
}

type shownAt struct {
	asOf newlyunread.Position
	at   int
}

type group struct {
	id      id.Channel
	members map[id.User]*member
	head    id.Seq
}

type member struct{ muted bool }

// post is a message that waits, with those to whom it counts still.
type post struct {
	group  *group
	sender id.User
	counts map[id.User]bool
}

type arriving struct{ recipient, sender id.User }

func (m *iconModel) somebody(r *rapid.T) id.User { return rapid.SampledFrom(m.ids).Draw(r, "person") }

func (m *iconModel) some(r *rapid.T) *group { return rapid.SampledFrom(m.groups).Draw(r, "group") }

func (m *iconModel) create(r *rapid.T) {
	if len(m.groups) == 3 {
		return
	}
	n := rapid.IntRange(2, len(m.ids)).Draw(r, "members")
	g := &group{members: make(map[id.User]*member)}
	for _, who := range m.ids[:n] {
		g.members[who] = &member{}
	}
	made, err := m.channels.Create(r.Context(), person.Viewer{Role: person.RoleService}, channel.New{Kind: channel.Group, Members: m.ids[:n]})
	if err != nil {
		r.Fatal(err)
	}
	g.id = made.ID
	m.groups = append(m.groups, g)
}

func (m *iconModel) send(r *rapid.T) {
	g, who := m.some(r), m.somebody(r)
	if g.members[who] == nil {
		return
	}
	draft := channel.Draft{ChannelID: g.id, Body: "hello", MentionsEveryone: rapid.IntRange(0, 5).Draw(r, "everyone at 0") == 0}
	if rapid.IntRange(0, 2).Draw(r, "naming at 0") == 0 {
		draft.Mentions = []id.User{m.somebody(r)}
	}
	if _, err := m.channels.Send(r.Context(), person.Viewer{ID: who}, draft, readstate.DefaultCap); err != nil {
		r.Fatal(err)
	}
	g.head++
	p := &post{group: g, sender: who, counts: make(map[id.User]bool)}
	small := len(g.members) <= fewMembers
	for user, seat := range g.members {
		named := slices.Contains(draft.Mentions, user)
		if user != who && (named || small && (draft.MentionsEveryone || !seat.muted)) {
			p.counts[user] = true
		}
	}
	m.sent = append(m.sent, p)
}

func (m *iconModel) delete(r *rapid.T) {
	g := m.some(r)
	if g.head == 0 {
		return
	}
	seq := id.Seq(rapid.IntRange(1, int(g.head)).Draw(r, "seq"))
	if _, err := m.channels.Delete(r.Context(), person.Viewer{Role: person.RoleService}, g.id, seq); err != nil {
		r.Fatal(err)
	}
}

func (m *iconModel) mute(r *rapid.T) {
	g, who := m.some(r), m.somebody(r)
	seat := g.members[who]
	if seat == nil {
		return
	}
	seat.muted = !seat.muted
	if _, err := m.readStates.SetMuted(r.Context(), who, g.id, seat.muted, readstate.DefaultCap); err != nil {
		r.Fatal(err)
	}
}

func (m *iconModel) leave(r *rapid.T) {
	g, who := m.some(r), m.somebody(r)
	if g.members[who] == nil {
		return
	}
	delete(g.members, who)
	if _, err := m.channels.RemoveMember(r.Context(), person.Viewer{Role: person.RoleService}, g.id, who); err != nil {
		r.Fatal(err)
	}
}

func (m *iconModel) join(r *rapid.T) {
	g, who := m.some(r), m.somebody(r)
	if g.members[who] != nil {
		return
	}
	g.members[who] = &member{}
	if _, err := m.channels.AddMembers(r.Context(), person.Viewer{Role: person.RoleService}, g.id, []id.User{who}); err != nil {
		r.Fatal(err)
	}
}

func (m *iconModel) relay(r *rapid.T) {
	if err := m.pipeline.relay(r.Context()); err != nil {
		r.Fatal(err)
	}
	for _, p := range m.sent {
		for _, user := range m.ids {
			if p.counts[user] {
				m.relayed = append(m.relayed, arriving{user, p.sender})
			}
		}
	}
	m.sent = nil
}

// project also brings what was flushed: the reference cannot tell when that was relayed, so all of it is.
func (m *iconModel) project(r *rapid.T) {
	m.relay(r)
	if err := m.pipeline.project(r.Context()); err != nil {
		r.Fatal(err)
	}
	for _, d := range m.relayed {
		reader := m.people[d.recipient]
		reader.arrived = append(reader.arrived, d.sender)
	}
	m.relayed = nil
}

func (m *iconModel) look(r *rapid.T) { m.compare(r, m.somebody(r)) }

// compare compares what somebody is shown, and remembers up to where.
func (m *iconModel) compare(r *rapid.T, who id.User) {
	shown, err := m.icons.Get(r.Context(), who, 10)
	if err != nil {
		r.Fatal(err)
	}
	reader := m.people[who]
	want := make(map[id.User]bool)
	for _, sender := range reader.arrived[reader.acknowledged:] {
		want[sender] = true
	}
	got := make(map[id.User]bool)
	for _, s := range shown.Senders {
		got[s.UserID] = true
	}
	if shown.Count() != len(want) || len(got) != len(want) {
		r.Fatalf("person %d is shown %v, want %v", who, got, want)
	}
	for sender := range want {
		if !got[sender] {
			r.Fatalf("person %d is shown %v, want %v", who, got, want)
		}
	}
	reader.shown = append(reader.shown, shownAt{shown.AsOf, len(reader.arrived)})
}

func (m *iconModel) acknowledge(r *rapid.T) {
	who := m.somebody(r)
	reader := m.people[who]
	upTo, asOf := len(reader.arrived), (*newlyunread.Position)(nil)
	switch {
	case rapid.IntRange(0, 3).Draw(r, "up to now at 0") == 0:
	case rapid.IntRange(0, 5).Draw(r, "far ahead at 0") == 0:
		asOf = new(newlyunread.Position(1 << 62))
	case len(reader.shown) > 0:
		shown := rapid.SampledFrom(reader.shown).Draw(r, "shown")
		upTo, asOf = shown.at, &shown.asOf
	}
	reader.acknowledged = max(reader.acknowledged, upTo)
	if _, err := m.icons.Acknowledge(r.Context(), who, asOf, 10); err != nil {
		r.Fatal(err)
	}
	m.compare(r, who)
}

// A worker that was thought dead writes nothing.
func TestAnOldFenceWritesNothing(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	old := newPipeline(t, d.store)
	conn := d.conn()
	exec(t, conn, `UPDATE lease SET until = '-infinity'`)
	now := newPipeline(t, d.store)
	group := d.group(anna, ben)
	d.send(anna, group)
	work := func(p *pipeline) {
		t.Helper()
		if err := p.relay(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.project(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	work(old)
	if n := value[int](t, conn, `SELECT count(*) FROM outbox`); n != 1 {
		t.Errorf("an old relay has taken %d", 1-n)
	}
	if err := now.relay(t.Context()); err != nil {
		t.Fatal(err)
	}
	work(old)
	if n := value[int](t, conn, `SELECT count(*) FROM arrival`); n != 0 {
		t.Error("an old projector has stored")
	}
	work(now)
	if n := value[int](t, conn, `SELECT count(*) FROM arrival`); n != 1 {
		t.Errorf("%d arrivals", n)
	}
}

// What cannot be stored is set aside, and holds nobody up.
func TestWhatCannotBeStoredIsSetAside(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	conn := d.conn()
	exec(t, conn, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF NEW.sender = 3 THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$`)
	exec(t, conn, `CREATE TRIGGER refuse BEFORE INSERT ON arrival FOR EACH ROW EXECUTE FUNCTION refuse()`)
	group := d.group(anna, ben, cleo)
	for range 3 {
		d.send(ben, group)
		d.send(cleo, group) // to anna, it cannot be stored
	}
	worker := newlyunread.NewWorker(newlyunread.WorkerConfig{Queue: d.store, Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	await(t, conn, `EXISTS (SELECT FROM arrival WHERE recipient = 1 AND sender = 2)`)
	await(t, conn, `NOT EXISTS (SELECT FROM arrival_event WHERE NOT parked)`)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	parked, err := d.store.Parked(t.Context())
	if err != nil || parked == 0 || worker.Stats().Parked == 0 {
		t.Errorf("%d parked, %v; the worker says %d", parked, err, worker.Stats().Parked)
	}
	if n := value[int](t, conn, `SELECT count(*) FROM arrival WHERE sender = 2`); n != 2 {
		t.Errorf("%d of the others are stored, want 2", n)
	}
}

// The count reads the index alone, over as many entries as there are senders since the acknowledge, whatever is before it.
func TestTheCountReadsTheIndexAlone(t *testing.T) {
	t.Parallel()
	var asked recorder
	d := openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t), Tracer: &asked})
	conn := d.conn()
	exec(t, conn, `INSERT INTO arrival SELECT 1, s, s FROM generate_series(2, 20001) s`)
	exec(t, conn, `INSERT INTO arrival SELECT r, 1, r FROM generate_series(2, 20001) r`)
	exec(t, conn, `INSERT INTO user_activity VALUES (1, 19991, now())`)
	exec(t, conn, `VACUUM ANALYZE arrival`)
	if s, err := d.store.NewlyUnread(t.Context(), anna, readstate.DefaultCap+1); err != nil || len(s.Senders) != 10 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, run := range asked.take() {
		if run.name() != "GetNewlyUnread" {
			continue
		}
		plan := explain(t, asked.connect(t), run)
		var scanned int
		plan.each(0, func(_ int, n node) {
			if n.Index != "arrival_latest" {
				return
			}
			scanned++
			if n.Type != "Index Only Scan" || n.HeapFetches != 0 || n.Rows != 10 || n.Hit+n.Read > 5 {
				t.Errorf("a scan of %v rows, with %d from the table and %d pages", n.Rows, n.HeapFetches, n.Hit+n.Read)
			}
		})
		if scanned != 1 || plan.readsWholeTable() {
			t.Errorf("the index is scanned %d times:%v", scanned, plan)
		}
		return
	}
	t.Error("nothing was asked")
}

// A relay that has looked before somebody mutes or leaves, and takes the message after that, must not count it twice: who
// was acknowledged meanwhile would come back.
func TestAMuteWhileTheRelayWaits(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(d *domain, group id.Channel) error{
		"muting": func(d *domain, group id.Channel) error {
			_, err := d.readStates.SetMuted(d.t.Context(), ben, group, true, 99)
			return err
		},
		"leaving": func(d *domain, group id.Channel) error {
			_, err := d.channels.RemoveMember(d.t.Context(), person.Viewer{ID: ben}, group, ben)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDomain(t)
			p := newPipeline(t, d.store)
			icons := newlyunread.New(newlyunread.Config{Store: d.store})
			group, conn, watch := d.group(anna, ben), d.conn(), d.conn()
			d.send(anna, group)
			exec(t, conn, `BEGIN`)
			exec(t, conn, `SELECT FROM lease WHERE partition = -1 FOR UPDATE`)
			relayed := make(chan error, 1)
			go func() { relayed <- p.relay(t.Context()) }()
			await(t, watch, someoneWaits)
			if err := away(d, group); err != nil {
				t.Fatal(err)
			}
			if err := p.project(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown, err := icons.Get(t.Context(), ben, 10); err != nil || shown.Count() != 1 {
				t.Fatalf("shown %+v, %v", shown, err)
			}
			if _, err := icons.Acknowledge(t.Context(), ben, nil, 10); err != nil {
				t.Fatal(err)
			}
			exec(t, conn, `COMMIT`)
			if err := <-relayed; err != nil {
				t.Fatal(err)
			}
			if err := p.project(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown, err := icons.Get(t.Context(), ben, 10); err != nil || shown.Count() != 0 {
				t.Errorf("acknowledged, and shown again: %+v, %v", shown, err)
			}
		})
	}
}

// Leases that are given back cleanly, or are of a partition with nothing to do, count as no attempts.
func TestQuietHandoversCountForNothing(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	conn := d.conn()
	for range 5 {
		newPipeline(t, d.store)
		if err := d.store.ForgetWorker(t.Context(), "by hand", everyPartition()); err != nil {
			t.Fatal(err)
		}
		newPipeline(t, d.store)
		exec(t, conn, `UPDATE lease SET until = now() - interval '1 second'`) // as one that died
	}
	if n := value[int](t, conn, `SELECT max(attempts) FROM lease`); n != 0 {
		t.Errorf("%d attempts", n)
	}
	d.send(anna, d.group(anna, ben))
	newPipeline(t, d.store)
	if n := value[int](t, conn, `SELECT sum(attempts) FROM lease`); n != 1 {
		t.Errorf("%d attempts, want the relay's", n)
	}
}

// Many mute and leave one channel at the same time, while messages wait in it.
func TestManyMuteAtOnce(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	const people = 30
	members := make([]id.User, people)
	for i := range members {
		members[i] = id.User(i + 1)
	}
	group := d.group(anna, members...)
	for range 50 {
		d.send(anna, group)
	}
	var away errgroup.Group
	for _, who := range members[1:] {
		away.Go(func() error {
			_, err := d.readStates.SetMuted(t.Context(), who, group, true, 99)
			return err
		})
		away.Go(func() error {
			_, err := d.trySend(t.Context(), anna, group, "")
			return err
		})
	}
	if err := away.Wait(); err != nil {
		t.Fatal(err)
	}
}
