package live_test

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/person"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/redis/redistest"
)

// L05: what waits for a screen that is not looked at is one badge of each channel, the newest.
func TestL05ASlowScreen(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	const channels, each = 50, 20
	var groups []id.Channel
	for range channels {
		groups = append(groups, writer.group(anna, ben))
	}
	slow, quick := shown.watch(ben, live.Watch{Cap: 10_000}), shown.watch(ben, live.Watch{Cap: 10_000})
	slow.look()
	for n := range each {
		for _, group := range groups {
			sent := writer.send(anna, group)
			quick.await("the message shows at once", func() bool {
				return quick.badges[group].HighWaterSeq == sent.Message.Seq && quick.badges[group].Countable == n+1
			})
		}
	}
	change, some, err := slow.stream.Next()
	if !some || err != nil || change.Snapshot || len(change.Badges) != channels {
		t.Fatalf("%d badges waited, %v, %v", len(change.Badges), some, err)
	}
	slow.take(change)
	if want, total := writer.truth(ben, false); !maps.Equal(slow.badges, want) || slow.total != total {
		t.Errorf("they are not the newest: %v, want %v", slow.badges, want)
	}
	if _, some, _ := slow.stream.Next(); some {
		t.Error("and there was more")
	}
	if stats := shown.hub.Stats(); stats.Conflated != channels*(each-1) {
		t.Errorf("%d melted, want %d", stats.Conflated, channels*(each-1))
	}
}

// L09: a person with 500 channels is told all at once, and then of the one that changes.
func TestL09ManyChannels(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	const channels = 500
	var groups []id.Channel
	for range channels {
		groups = append(groups, writer.group(anna, ben))
	}
	s := shown.watch(ben, live.Watch{})
	first, _, _ := s.stream.Next()
	if !first.Snapshot || len(first.Badges) != channels {
		t.Fatalf("the first is %v, of %d badges", first.Snapshot, len(first.Badges))
	}
	writer.send(anna, groups[7])
	<-s.woken // at once, for the first
	var next live.BadgeChange
	eventually(t, "the next comes", func() (some bool) {
		next, some, _ = s.stream.Next()
		return some
	})
	if next.Snapshot || len(next.Badges) != 1 || next.Badges[0].ChannelID != groups[7] || next.Total.Countable != 1 {
		t.Errorf("the next is %+v", next)
	}
}

// M03: who leaves with 7 unread is told so, with the new total, also where nobody could tell.
func TestM03LeavingWithUnread(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]float64{"told": 0, "lost": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngines(t)
			writer := e.start(live.Config{}, nil)
			shown := e.start(live.Config{ReconcileEvery: 200 * time.Millisecond}, func(b live.Broker) live.Broker { return lossy{b, lose, 0, 0} })
			here, there := writer.group(anna, ben), writer.group(anna, ben)
			for range 7 {
				writer.send(anna, here)
			}
			writer.send(anna, there)
			s := shown.watch(ben, live.Watch{})
			s.look()
			reader := shown.listen(ben, here, delivery.Held{})
			writer.leave(ben, here)
			s.await("it is gone", func() bool { return len(s.badges) == 1 && s.total.Countable == 1 })
			reader.await("its events end", func() bool { return fault.CodeOf(reader.err) == fault.NotFound })
			if stats := shown.hub.Stats(); (stats.Reconciled+stats.Gaps > 0) != (lose == 1) {
				t.Errorf("found by comparing: %+v", stats)
			}
		})
	}
}

// R06: what a process holds says 3, the truth is 0, and the cursor is at the head already. Reading again puts it right.
func TestR06ReadingAgainPutsAnOldCopyRight(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	writer := e.start(live.Config{}, nil)
	deaf := &switched{}
	shown := e.start(live.Config{ReconcileEvery: time.Hour}, deaf.between)
	group := writer.group(anna, ben)
	for range 3 {
		writer.send(anna, group)
	}
	s := shown.watch(ben, live.Watch{})
	s.look()
	deaf.set(true)
	writer.read(ben, group, 3)
	eventually(t, "the publication is lost", func() bool { return deaf.missed() > 0 })
	deaf.set(false)
	if s.look(); s.total.Countable != 3 {
		t.Fatalf("it was told after all: %+v", s.total)
	}
	writer.read(ben, group, 3)
	s.await("it is right", func() bool { return s.total.Countable == 0 })
}

// Whoever subscribes sees the truth at once, whatever was lost before.
func TestWhoSubscribesSeesTheTruth(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	writer := e.start(live.Config{}, nil)
	deaf := &switched{}
	shown := e.start(live.Config{ReconcileEvery: time.Hour}, deaf.between)
	left, read, muted := writer.group(anna, ben), writer.group(anna, ben), writer.group(anna, ben)
	for _, group := range []id.Channel{left, read, muted} {
		writer.send(anna, group)
	}
	old := shown.watch(ben, live.Watch{})
	old.look()
	deaf.set(true)
	writer.leave(ben, left)
	writer.read(ben, read, 1)
	writer.mute(ben, muted, true)
	joined := writer.group(anna, ben)
	writer.send(anna, joined)
	eventually(t, "it is lost", func() bool { return deaf.missed() >= 4 })
	fresh := shown.watch(ben, live.Watch{})
	fresh.look()
	want, total := writer.truth(ben, false)
	if !maps.Equal(fresh.badges, want) || fresh.total != total {
		t.Errorf("there is %v, want %v", fresh.badges, want)
	}
	old.await("the old screen is right, too", func() bool {
		delete(old.badges, muted)
		return maps.Equal(old.badges, want) && old.total == total
	})
}

// A subscriber who wants more counted than others before is told so much, also while messages come.
func TestALargerCap(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben)
	for range 20 {
		writer.send(anna, group)
	}
	if _, err := writer.channels.Delete(t.Context(), person.Viewer{ID: anna}, group, 20); err != nil { // so they are counted by rows
		t.Fatal(err)
	}
	small := shown.watch(ben, live.Watch{Cap: 3})
	small.await("it is counted to the cap", func() bool { return small.total.Countable > 3 })
	var sending sync.WaitGroup
	sending.Go(func() {
		for range 50 {
			writer.send(anna, group)
		}
	})
	for range 10 {
		large := shown.watch(ben, live.Watch{Cap: 5000})
		large.look()
		large.stream.Close()
	}
	sending.Wait()
	large := shown.watch(ben, live.Watch{Cap: 5000})
	large.await("all are counted", func() bool { return large.total.Countable == 69 && large.badges[group].Countable == 69 })
}

// L11: open subscriptions are told of another store by a snapshot, and keep its smaller versions.
func TestL11ARestoreUnderOpenSubscriptions(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	p := e.start(live.Config{}, nil)
	group := p.group(anna, ben)
	p.send(anna, group)
	copied := e.backUp()
	p.reconnect()
	for range 10 {
		p.send(anna, group)
	}
	shown := e.start(live.Config{ReconcileEvery: 200 * time.Millisecond}, nil)
	s, l := shown.watch(ben, live.Watch{}), shown.listen(ben, group, delivery.Held{})
	s.look()
	before, version := s.store, s.badges[group].Version()
	copied()
	p.reconnect()
	p.send(anna, group)
	s.await("it is told of the other store", func() bool { return s.store != before && s.badges[group].HighWaterSeq == 2 })
	if got := s.badges[group].Version(); got >= version {
		t.Errorf("version %d, and it was %d before", got, version)
	}
	l.await("so are its events", func() bool { return slices.Equal(l.resync, []delivery.Reason{delivery.StoreChanged}) })
	p.send(anna, group)
	s.await("it follows", func() bool { return s.badges[group].HighWaterSeq == 3 })
	l.await("so do they", func() bool { return len(l.held) > 0 && l.held[len(l.held)-1] == 3 })
}

// reconnect returns when the process has noticed that its connections have gone.
func (p *process) reconnect() {
	p.t.Helper()
	eventually(p.t, "the store answers", func() bool {
		_, _, err := p.store.Badges(p.t.Context(), anna, 1)
		return err == nil
	})
}

// backUp copies the database. The copy takes its place when the function that it returns is called.
func (e engines) backUp() (restore func()) {
	e.t.Helper()
	location, err := url.Parse(e.database)
	if err != nil {
		e.t.Fatal(err)
	}
	name := strings.TrimPrefix(location.Path, "/")
	location.Path = "/postgres"
	run := func(commands ...string) {
		e.t.Helper()
		conn, err := pgx.Connect(e.t.Context(), location.String())
		if err != nil {
			e.t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(e.t.Context()))
		for _, command := range commands {
			if _, err := conn.Exec(e.t.Context(), command); err != nil {
				e.t.Fatalf("%s: %v", command, err)
			}
		}
	}
	run("ALTER DATABASE "+name+" ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'",
		"CREATE DATABASE "+name+"_backup TEMPLATE "+name+" STRATEGY file_copy",
		"ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
	return func() {
		run("DROP DATABASE "+name+" WITH (FORCE)", "ALTER DATABASE "+name+"_backup RENAME TO "+name)
	}
}

// Two installations that share a Redis, and give out the same ids, never mix.
func TestAnotherInstallationOnTheSameRedis(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	other := engines{t: t, database: pgtest.NewDatabase(t), redis: e.redis}
	config := live.Config{ReconcileEvery: time.Hour}
	writer, shown, stranger := e.start(config, nil), e.start(config, nil), other.start(config, nil)
	group, theirs := writer.group(anna, ben), stranger.group(anna, ben)
	if group != theirs {
		t.Fatalf("channels %d and %d", group, theirs)
	}
	s := shown.watch(ben, live.Watch{})
	for range 5 {
		stranger.send(anna, theirs)
	}
	writer.send(anna, group)
	s.await("one message", func() bool { return s.total.Countable == 1 })
	stranger.send(anna, theirs)
	writer.send(anna, group)
	s.await("two messages", func() bool { return s.total.Countable == 2 })
	if want, _ := writer.truth(ben, false); !maps.Equal(s.badges, want) {
		t.Errorf("there is %v, want %v", s.badges, want)
	}
}

// While Redis is away, whoever subscribes sees the truth, and what happens meanwhile shows when it is back.
func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Start},
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngines(t)
			config := live.Config{ReconcileEvery: time.Hour}
			writer, shown := e.start(config, nil), e.start(config, nil)
			group := writer.group(anna, ben)
			early := shown.watch(ben, live.Watch{})
			early.look()
			fault.begin(e.redis)
			eventually(t, "it is noticed", func() bool { return !shown.hub.Linked() && !writer.hub.Linked() })
			writer.send(anna, group)
			late := shown.watch(ben, live.Watch{})
			if late.look(); late.total.Countable != 1 {
				t.Errorf("who comes meanwhile sees %+v", late.total)
			}
			writer.send(anna, group)
			fault.end(e.redis)
			for _, s := range []*screen{early, late} {
				s.await("it is right again", func() bool { return s.total.Countable == 2 })
			}
			eventually(t, "the writer's link is back", func() bool { return writer.hub.Linked() })
			writer.send(anna, group)
			early.await("it follows", func() bool { return early.total.Countable == 3 })
		})
	}
}

// While Postgres is away nobody can subscribe, those who have are right again when it is back.
func TestPostgresIsAway(t *testing.T) {
	t.Parallel()
	postgres := pgtest.NewServer(t)
	e := engines{t: t, database: postgres.URL(), redis: redistest.New(t)}
	p := e.start(live.Config{ReconcileEvery: 300 * time.Millisecond}, nil)
	group := p.group(anna, ben)
	s := p.watch(ben, live.Watch{})
	postgres.Kill()
	if _, err := p.hub.Badges(t.Context(), anna, live.Watch{Cap: 99}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("subscribe: %v", err)
	}
	if _, err := p.hub.Events(t.Context(), anna, group, delivery.Held{}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("subscribe to events: %v", err)
	}
	postgres.Start()
	p.send(anna, group)
	s.await("it follows", func() bool { return s.total.Countable == 1 })
}

func TestWhatMayNotBeAskedFor(t *testing.T) {
	t.Parallel()
	p := newEngines(t).start(live.Config{}, nil)
	for argument, watch := range map[string]live.Watch{
		"channelIds": {ChannelIDs: make([]id.Channel, 1001), Cap: 99},
		"cap":        {Cap: 10_001},
	} {
		_, err := p.hub.Badges(t.Context(), anna, watch)
		if fault.CodeOf(err) != fault.BadUserInput || !strings.HasPrefix(fault.MessageOf(err), argument+" ") {
			t.Errorf("%s: %v", argument, err)
		}
	}
	if stats := p.hub.Stats(); stats.People != 0 {
		t.Errorf("%+v", stats)
	}
}
