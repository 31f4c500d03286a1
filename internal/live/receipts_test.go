package live_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/person"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
	"tidemark/internal/redis/redistest"
)

// watcher is a client that keeps what it was told last of a message's readers.
type watcher struct {
	t      *testing.T
	p      *process
	who    id.User
	in     id.Channel
	seq    id.Seq
	stream *live.ReceiptStream
	woken  chan struct{}
	told   receipt.Receipt
	events int
	err    error
}

// watchReaders subscribes to who has read a message, and shows nothing before it is looked at.
func (p *process) watchReaders(who id.User, in id.Channel, seq id.Seq) *watcher {
	p.t.Helper()
	stream, err := p.hub.Receipt(p.t.Context(), who, in, seq)
	if err != nil {
		p.t.Fatal(err)
	}
	w := &watcher{t: p.t, p: p, who: who, in: in, seq: seq, stream: stream, woken: make(chan struct{}, 1)}
	p.t.Cleanup(stream.Close)
	stream.Notify(func() {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	})
	return w
}

func (w *watcher) look() {
	for {
		told, some, err := w.stream.Next()
		if err != nil {
			w.err = err
		}
		if !some {
			return
		}
		w.told, w.events = told, w.events+1
	}
}

func (w *watcher) await(what string, ok func() bool) {
	w.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		w.look()
		if ok() {
			return
		}
		select {
		case <-w.woken:
		case <-timeout.C:
			w.t.Fatalf("not so after %v: %s; there is %+v, %v", patience, what, w.told, w.err)
		}
	}
}

// shows waits for so many readers of so many.
func (w *watcher) shows(what string, readers, audience int) {
	w.t.Helper()
	w.await(what, func() bool {
		return w.events > 0 && w.told == receipt.Receipt{ChannelID: w.in, Seq: w.seq, ReadCount: readers, AudienceCount: audience}
	})
}

// agrees waits until it shows what the store says, or has ended where that says so.
func (w *watcher) agrees() {
	w.t.Helper()
	want, err := w.p.receipts.Get(w.t.Context(), w.who, w.in, w.seq)
	w.await("it agrees with the store", func() bool {
		return fault.CodeOf(w.err) == fault.CodeOf(err) && (err != nil || w.told == want)
	})
}

func (p *process) share(who id.User, share bool) {
	p.t.Helper()
	if err := p.receipts.SetSharing(p.t.Context(), who, share); err != nil {
		p.t.Error(err)
	}
}

func TestAWatchedMessageFollows(t *testing.T) {
	t.Parallel()
	const dora id.User = 4
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben, cleo, dora)
	writer.send(anna, group)
	w, own := shown.watchReaders(anna, group, 1), writer.watchReaders(anna, group, 1)
	shows := func(what string, readers, audience int) {
		t.Helper()
		w.shows(what, readers, audience)
		own.shows(what, readers, audience)
	}
	shows("at first", 0, 3)
	writer.read(ben, group, 1)
	shows("one has read", 1, 3)
	if _, err := writer.readStates.MarkUnread(t.Context(), ben, group, 1, nil, 99); err != nil {
		t.Fatal(err)
	}
	writer.send(cleo, group)
	shows("one has written", 2, 3)
	hidden := shown.watchReaders(dora, group, 1)
	hidden.shows("to another", 2, 3)
	writer.share(dora, false)
	hidden.shows("who does not share sees nothing", 0, 0)
	shows("and is not seen", 2, 2)
	writer.read(dora, group, 2)
	writer.share(dora, true)
	hidden.shows("who shares again sees all", 3, 3)
	shows("and is seen", 3, 3)
	writer.leave(ben, group)
	shows("one has left", 2, 2)
	writer.add(group, anna, ben)
	writer.read(ben, group, 2)
	writer.leave(cleo, group)
	shows("one is back, and another has left", 1, 1)
	writer.leave(dora, group)
	hidden.await("it ends for who leaves", func() bool { return fault.CodeOf(hidden.err) == fault.NotFound })
	shows("nobody is left", 0, 0)
	if stats := shown.hub.Stats(); stats.Watched != 1 || stats.People != 0 {
		t.Errorf("%+v", stats)
	}
	for _, stream := range []*live.ReceiptStream{w.stream, hidden.stream} {
		stream.Close()
		stream.Close()
	}
	if stats := shown.hub.Stats(); stats.Watched != 0 {
		t.Errorf("%+v", stats)
	}
}

// Whoever may not ask may not watch.
func TestReadersAreWatchedByMembers(t *testing.T) {
	t.Parallel()
	p := newEngines(t).start(live.Config{}, nil)
	group := p.group(anna, ben)
	p.send(anna, group)
	p.add(group, anna, cleo)
	for what, ask := range map[string]struct {
		who  id.User
		seq  id.Seq
		code fault.Code
	}{
		"a stranger":             {99, 1, fault.NotFound},
		"who joined after it":    {cleo, 1, fault.NotFound},
		"what is not sent yet":   {anna, 2, fault.NotFound},
		"what is no seq":         {anna, -1, fault.BadUserInput},
		"what can never be sent": {anna, id.MaxSeq + 1, fault.BadUserInput},
	} {
		if _, err := p.hub.Receipt(t.Context(), ask.who, group, ask.seq); fault.CodeOf(err) != ask.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	if stats := p.hub.Stats(); stats.Watched != 0 {
		t.Errorf("%+v", stats)
	}
}

// A reader who passes a thousand messages makes one event for each that is watched; and whoever is slow gets the newest
// alone.
func TestAReaderWhoPassesAThousandMessages(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	people := make([]id.User, 20)
	for i := range people {
		people[i] = id.User(100 + i)
	}
	group := writer.group(anna, people...)
	for range 1000 {
		writer.send(anna, group)
	}
	first, last := shown.watchReaders(anna, group, 1), shown.watchReaders(anna, group, 1000)
	slow := shown.watchReaders(anna, group, 500)
	first.shows("at first", 0, 20)
	last.shows("at first", 0, 20)
	slow.shows("at first", 0, 20)
	for i, who := range people {
		writer.read(who, group, 1000)
		first.shows("one more", i+1, 20)
		last.shows("one more", i+1, 20)
	}
	slow.shows("all at once", 20, 20)
	if first.events != 21 || last.events != 21 || slow.events != 2 {
		t.Errorf("%d, %d and %d events", first.events, last.events, slow.events)
	}
	writer.read(people[0], group, 1000) // nothing is new
	writer.share(people[0], true)
	writer.send(people[1], group)
	writer.leave(people[2], group)
	first.shows("one is gone", 19, 19)
	if first.events != 22 {
		t.Errorf("%d events", first.events)
	}
}

// As L02: somebody reads at every moment around subscribe.
func TestReadingAroundSubscribe(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	const members = 40
	people := make([]id.User, members)
	for i := range people {
		people[i] = id.User(100 + i)
	}
	group := writer.group(anna, people...)
	for round := id.Seq(1); round <= 15; round++ {
		writer.send(anna, group)
		var reading sync.WaitGroup
		for _, half := range [][]id.User{people[:members/2], people[members/2:]} {
			reading.Go(func() {
				for _, who := range half {
					writer.read(who, group, round)
				}
			})
		}
		watchers := make([]*watcher, 3)
		for i := range watchers {
			watchers[i] = shown.watchReaders(anna, group, round)
		}
		reading.Wait()
		for _, w := range watchers {
			w.shows("all have read", members, members)
			w.stream.Close()
		}
	}
}

// What was published and lost is found by comparing, as is what was published by nobody.
func TestLostPublicationsOfReaders(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	writer := e.start(live.Config{}, nil)
	deaf := &switched{}
	shown := e.start(live.Config{ReconcileEvery: 300 * time.Millisecond}, deaf.between)
	group := writer.group(anna, ben, cleo)
	writer.send(anna, group)
	w, gone := shown.watchReaders(anna, group, 1), shown.watchReaders(cleo, group, 1)
	w.shows("at first", 0, 2)
	gone.shows("at first", 0, 2)
	deaf.set(true)
	writer.read(ben, group, 1)
	w.shows("one has read", 1, 2)
	writer.share(ben, false)
	w.shows("and shares no more", 0, 1)
	writer.leave(cleo, group)
	gone.await("it ends for who leaves", func() bool { return fault.CodeOf(gone.err) == fault.NotFound })
	w.shows("nobody is left", 0, 0)
}

func TestReadersWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	postgres := pgtest.NewServer(t)
	e := engines{t: t, database: postgres.URL(), redis: redistest.New(t)}
	p := e.start(live.Config{ReconcileEvery: 300 * time.Millisecond}, nil)
	group := p.group(anna, ben)
	p.send(anna, group)
	w := p.watchReaders(anna, group, 1)
	w.shows("at first", 0, 1)
	postgres.Kill()
	if _, err := p.hub.Receipt(t.Context(), anna, group, 1); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("subscribe: %v", err)
	}
	postgres.Start()
	p.read(ben, group, 1)
	w.shows("it follows again", 1, 1)
}

// Redis away takes live updates only: whoever asks is answered, and whoever watches is told when it is back.
func TestReadersWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	config := live.Config{ReconcileEvery: time.Hour}
	writer, shown := e.start(config, nil), e.start(config, nil)
	group := writer.group(anna, ben, cleo)
	writer.send(anna, group)
	w := shown.watchReaders(anna, group, 1)
	w.shows("at first", 0, 2)
	e.redis.Kill()
	writer.read(ben, group, 1)
	if got, err := shown.receipts.Get(t.Context(), anna, group, 1); err != nil || got.ReadCount != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	late := shown.watchReaders(anna, group, 1)
	late.shows("who subscribes meanwhile", 1, 2)
	e.redis.Start()
	w.shows("who watched before", 1, 2)
	writer.read(cleo, group, 1)
	w.shows("it follows again", 2, 2)
	late.shows("so does the other", 2, 2)
}

// As L11: of another store, nothing that was known is told any more.
func TestReadersInARestoredStore(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	p := e.start(live.Config{}, nil)
	group := p.group(anna, ben, cleo)
	p.send(anna, group)
	copied := e.backUp()
	p.reconnect()
	p.send(anna, group)
	p.read(ben, group, 2)
	shown := e.start(live.Config{ReconcileEvery: 200 * time.Millisecond}, nil)
	w, lost := shown.watchReaders(anna, group, 1), shown.watchReaders(anna, group, 2)
	w.shows("one has read", 1, 2)
	lost.shows("one has read", 1, 2)
	copied()
	p.reconnect()
	w.shows("nobody has", 0, 2)
	lost.await("it was never sent", func() bool { return fault.CodeOf(lost.err) == fault.NotFound })
	p.read(cleo, group, 1)
	w.shows("it follows", 1, 2)
}

// TestModelOfWatchedMessages does at random what people do, in one process, while others watch in another, whose link
// loses, doubles and reorders publications, and whose Redis is flushed and cut off.
func TestModelOfWatchedMessages(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	config := live.Config{ReconcileEvery: reconcileEvery, Settle: 10 * time.Millisecond}
	writer := e.start(config, nil)
	shown := e.start(config, func(b live.Broker) live.Broker { return lossy{b, 0.2, 0.2, 0.2} })
	options, err := goredis.ParseURL(e.redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	admin := goredis.NewClient(options)
	t.Cleanup(func() { _ = admin.Close() })
	service := person.Viewer{Role: person.RoleService}
	next := id.User(1000)
	rapid.Check(t, func(r *rapid.T) {
		var people []id.User
		for range 4 {
			next++
			people = append(people, next)
		}
		group := writer.group(people[0], people[1:]...)
		var watchers []*watcher
		sent := 0
		somebody := func() id.User { return rapid.SampledFrom(people).Draw(r, "person") }
		send := func(r *rapid.T) {
			draft := channel.Draft{ChannelID: group, Body: "hello"}
			if _, err := writer.channels.Send(r.Context(), person.Viewer{ID: somebody()}, draft, readstate.DefaultCap); err == nil {
				sent++
			}
		}
		seq := func() id.Seq { return id.Seq(rapid.IntRange(0, sent).Draw(r, "seq")) }
		send(r)
		r.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) {},
			"send": send,
			"read": func(r *rapid.T) {
				cursor := readstate.Cursor{ChannelID: group, UpToSeq: seq()}
				_, _ = writer.readStates.MarkRead(r.Context(), somebody(), "", cursor, readstate.DefaultCap)
			},
			"unread": func(r *rapid.T) {
				_, _ = writer.readStates.MarkUnread(r.Context(), somebody(), group, seq(), nil, readstate.DefaultCap)
			},
			"leave": func(r *rapid.T) { _, _ = writer.channels.RemoveMember(r.Context(), service, group, somebody()) },
			"join": func(r *rapid.T) {
				_, _ = writer.channels.AddMembers(r.Context(), service, group, []id.User{somebody()})
			},
			"share": func(r *rapid.T) { writer.share(somebody(), rapid.Bool().Draw(r, "share")) },
			"watch": func(r *rapid.T) {
				who, of := somebody(), seq()
				if _, err := writer.receipts.Get(r.Context(), who, group, of); err == nil && len(watchers) < 6 {
					watchers = append(watchers, shown.watchReaders(who, group, of))
				}
			},
			"look": func(*rapid.T) {
				if len(watchers) > 0 {
					watchers[rand.IntN(len(watchers))].look()
				}
			},
			"fault": func(r *rapid.T) {
				switch rapid.IntRange(0, 19).Draw(r, "fault") {
				case 0:
					_ = admin.FlushAll(r.Context()).Err()
				case 1:
					_ = admin.ClientKillByFilter(r.Context(), "TYPE", "pubsub").Err()
				}
			},
		})
		began := time.Now()
		for _, w := range watchers {
			w.agrees()
			w.stream.Close()
		}
		if took := time.Since(began); took > within {
			r.Fatalf("it took %v", took)
		}
	})
	if stats := shown.hub.Stats(); stats.Watched != 0 {
		t.Errorf("%+v", stats)
	}
}
