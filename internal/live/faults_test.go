package live_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// lossy is a broker whose link loses some publications, doubles some, and lets some overtake others.
type lossy struct {
	live.Broker
	lose, double, delay float64
}

func (l lossy) Run(ctx context.Context, receiver live.Receiver) error {
	return l.Broker.Run(ctx, &lossyReceiver{Receiver: receiver, link: l})
}

type lossyReceiver struct {
	live.Receiver
	link    lossy
	delayed []live.Publication
}

func (l *lossyReceiver) Received(p live.Publication) {
	switch {
	case rand.Float64() < l.link.lose:
		return
	case rand.Float64() < l.link.delay:
		l.delayed = append(l.delayed, p)
	default:
		l.Receiver.Received(p)
	}
	if rand.Float64() < l.link.double {
		l.Receiver.Received(p)
	}
	if rand.Float64() < 0.3 {
		late := l.delayed
		l.delayed = nil
		rand.Shuffle(len(late), func(i, j int) { late[i], late[j] = late[j], late[i] })
		for _, p := range late {
			l.Receiver.Received(p)
		}
	}
}

// switched is a broker that loses everything while it is told to.
type switched struct {
	live.Broker
	mu   sync.Mutex
	deaf bool
	lost int
}

func (s *switched) between(b live.Broker) live.Broker {
	s.Broker = b
	return s
}

func (s *switched) Run(ctx context.Context, receiver live.Receiver) error {
	return s.Broker.Run(ctx, switchedReceiver{receiver, s})
}

func (s *switched) set(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = deaf
}

func (s *switched) missed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

type switchedReceiver struct {
	live.Receiver
	link *switched
}

func (r switchedReceiver) Received(p live.Publication) {
	r.link.mu.Lock()
	deaf := r.link.deaf
	if deaf {
		r.link.lost++
	}
	r.link.mu.Unlock()
	if !deaf {
		r.Receiver.Received(p)
	}
}

const (
	reconcileEvery = 300 * time.Millisecond
	// within is how long after the last fault a screen may be wrong: as long as comparing and making a new link take, on
	// a machine that does much else.
	within = reconcileEvery + 4*time.Second
)

// TestModelOfScreens does at random what people do, in one process, while others look at it in another whose link
// loses, doubles and reorders publications, and whose Redis is flushed, killed, paused and cut off. After each run every
// screen must be as the store has it, within the time to reconcile.
func TestModelOfScreens(t *testing.T) {
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
	next := id.User(1000)
	rapid.Check(t, func(r *rapid.T) {
		w := &world{writer: writer, shown: shown, sent: make(map[id.Channel]int), filters: make(map[*screen]live.Watch)}
		for range 3 {
			next++
			w.people = append(w.people, next)
		}
		w.create(r)
		for range 3 {
			w.open(r)
		}
		down := func() { // and back
			switch rapid.SampledFrom([]string{"killed", "paused", "flushed", "cut off"}).Draw(r, "fault") {
			case "killed":
				e.redis.Kill()
				w.send(r)
				e.redis.Start()
			case "paused":
				e.redis.Pause()
				w.send(r)
				e.redis.Resume()
			case "flushed":
				_ = admin.FlushAll(t.Context()).Err()
			case "cut off":
				_ = admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err()
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"":            func(*rapid.T) {},
			"create":      w.create,
			"send":        w.send,
			"send more":   w.send,
			"delete":      w.delete,
			"mark read":   w.markRead,
			"mark unread": w.markUnread,
			"mute":        w.mute,
			"leave":       w.leave,
			"add":         w.add,
			"open":        w.open,
			"close":       w.close,
			"look":        w.look,
			"fault": func(r *rapid.T) {
				if rapid.IntRange(0, 9).Draw(r, "often at 0") == 0 {
					down()
				}
			},
		})
		w.compare(r)
	})
	if stats := shown.hub.Stats(); stats.People != 0 {
		t.Errorf("%+v", stats)
	}
}

type world struct {
	writer, shown *process
	people        []id.User
	groups        []id.Channel
	sent          map[id.Channel]int
	screens       []*screen
	filters       map[*screen]live.Watch
}

func (w *world) somebody(r *rapid.T) id.User { return rapid.SampledFrom(w.people).Draw(r, "person") }
func (w *world) group(r *rapid.T) id.Channel { return rapid.SampledFrom(w.groups).Draw(r, "group") }

func (w *world) create(r *rapid.T) {
	if len(w.groups) > 3 {
		return
	}
	made, err := w.writer.channels.Create(r.Context(), person.Viewer{ID: w.somebody(r)}, channel.New{Kind: channel.Group, Members: w.people})
	if err != nil {
		r.Fatal(err)
	}
	w.groups = append(w.groups, made.ID)
}

// send has somebody send a message, or not, where they are no member.
func (w *world) send(r *rapid.T) {
	draft := channel.Draft{ChannelID: w.group(r), Body: "hello", MentionsEveryone: rapid.IntRange(0, 4).Draw(r, "everyone at 0") == 0}
	if rapid.Bool().Draw(r, "naming somebody") {
		draft.Mentions = []id.User{w.somebody(r)}
	}
	who := w.somebody(r)
	if _, err := w.writer.channels.Send(r.Context(), person.Viewer{ID: who}, draft, readstate.DefaultCap); err == nil {
		w.sent[draft.ChannelID]++
	}
}

func (w *world) seq(r *rapid.T, group id.Channel) id.Seq {
	return id.Seq(rapid.IntRange(0, w.sent[group]).Draw(r, "seq"))
}

func (w *world) delete(r *rapid.T) {
	group := w.group(r)
	_, _ = w.writer.channels.Delete(r.Context(), person.Viewer{Role: person.RoleService}, group, w.seq(r, group))
}

func (w *world) markRead(r *rapid.T) {
	group := w.group(r)
	limit := rapid.SampledFrom([]int{1, readstate.DefaultCap}).Draw(r, "cap")
	_, _ = w.writer.readStates.MarkRead(r.Context(), w.somebody(r), "", readstate.Cursor{ChannelID: group, UpToSeq: w.seq(r, group)}, limit)
}

func (w *world) markUnread(r *rapid.T) {
	group := w.group(r)
	_, _ = w.writer.readStates.MarkUnread(r.Context(), w.somebody(r), group, w.seq(r, group), nil, readstate.DefaultCap)
}

func (w *world) mute(r *rapid.T) {
	_, _ = w.writer.readStates.SetMuted(r.Context(), w.somebody(r), w.group(r), rapid.Bool().Draw(r, "muted"), readstate.DefaultCap)
}

func (w *world) leave(r *rapid.T) {
	who := w.somebody(r)
	_, _ = w.writer.channels.RemoveMember(r.Context(), person.Viewer{Role: person.RoleService}, w.group(r), who)
}

func (w *world) add(r *rapid.T) {
	_, _ = w.writer.channels.AddMembers(r.Context(), person.Viewer{Role: person.RoleService}, w.group(r), []id.User{w.somebody(r)})
}

func (w *world) open(r *rapid.T) {
	if len(w.screens) > 5 {
		return
	}
	watch := live.Watch{IncludeMuted: rapid.Bool().Draw(r, "with muted"), Cap: rapid.SampledFrom([]int{2, 99, 5000}).Draw(r, "cap")}
	if rapid.IntRange(0, 3).Draw(r, "some at 0") == 0 {
		watch.ChannelIDs = []id.Channel{w.group(r)}
	}
	s := w.shown.watch(w.somebody(r), watch)
	w.screens = append(w.screens, s)
	w.filters[s] = watch
}

func (w *world) close(r *rapid.T) {
	if len(w.screens) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.screens)-1).Draw(r, "screen")
	w.screens[i].stream.Close()
	w.screens = slices.Delete(w.screens, i, i+1)
}

func (w *world) look(r *rapid.T) {
	if len(w.screens) > 0 {
		rapid.SampledFrom(w.screens).Draw(r, "screen").look()
	}
}

// compare waits until each screen shows what the store has, counted as far as it asked.
func (w *world) compare(r *rapid.T) {
	began := time.Now()
	for _, s := range w.screens {
		watch := w.filters[s]
		want, total := w.writer.truth(s.who, true)
		maps.DeleteFunc(want, func(c id.Channel, b readstate.Badge) bool {
			return watch.ChannelIDs != nil && !slices.Contains(watch.ChannelIDs, c) || b.Muted && !watch.IncludeMuted
		})
		s.await("the screen is right", func() bool {
			got := maps.Clone(s.badges)
			maps.DeleteFunc(got, func(_ id.Channel, b readstate.Badge) bool { return b.Muted && !watch.IncludeMuted })
			return maps.EqualFunc(got, want, func(a, b readstate.Badge) bool { return shownAs(a, watch.Cap) == shownAs(b, watch.Cap) }) &&
				shownTotal(s.total, watch.Cap) == shownTotal(total, watch.Cap)
		})
		s.stream.Close()
	}
	// Also a link that is being made anew, and a machine that does much else.
	if took := time.Since(began); took > within {
		r.Fatalf("it took %v", took)
	}
}

func shownAs(b readstate.Badge, limit int) readstate.Badge {
	b.Countable, b.Naming = min(b.Countable, limit+1), min(b.Naming, limit+1)
	return b
}

func shownTotal(t readstate.Total, limit int) readstate.Total {
	t.Countable, t.Naming = min(t.Countable, limit+1), min(t.Naming, limit+1)
	return t
}
