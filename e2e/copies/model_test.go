package copies_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/readstate"
	"tidemark/internal/redis/redistest"
)

// TestModelOfCopies does at random what people do and what happens to Redis, on two workers and two readers, and compares
// what icons show with Postgres and with a reference that knows of messages alone.
func TestModelOfCopies(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	replica := l.replicate()
	shared := &model{lab: l, replica: replica}
	for range 2 {
		shared.workers = append(shared.workers, l.work(newlyunread.WorkerConfig{Check: newlyUnreadCheck(l, replica.URL()), Recency: time.Hour}))
		shared.readers = append(shared.readers, l.icons(l.copies()))
	}
	next := id.User(0)
	rapid.Check(t, func(r *rapid.T) {
		m := *shared
		m.people = make(map[id.User]*reader)
		for range 4 {
			next++
			m.ids = append(m.ids, next)
			m.people[next] = &reader{muted: make(map[id.Channel]bool)}
		}
		m.groups = []id.Channel{l.group(m.ids...), l.group(m.ids[:3]...)}
		m.members = map[id.Channel][]id.User{m.groups[0]: m.ids, m.groups[1]: m.ids[:3]}
		r.Repeat(map[string]func(*rapid.T){
			"":                   func(*rapid.T) {},
			"send":               m.send,
			"send more":          m.send,
			"send as well":       m.send,
			"glance":             m.glance,
			"look":               m.look,
			"look again":         m.look,
			"acknowledge":        m.acknowledge,
			"acknowledge late":   m.acknowledge,
			"mute":               m.mute,
			"apply late":         m.applyLate,
			"lose a copy":        m.loseCopy,
			"lose a mark":        m.loseMark,
			"lose all":           m.loseAll,
			"lose the scripts":   func(r *rapid.T) { l.raw.ScriptFlush(r.Context()) },
			"pause the replica":  func(*rapid.T) { replica.Pause() },
			"resume the replica": func(*rapid.T) { replica.Resume() },
			"somebody else does": m.begin,
		})
		for _, who := range m.ids {
			m.compare(r, who)
		}
	})
	var stats newlyunread.WorkerStats
	var read newlyunread.Stats
	for i := range shared.workers {
		stats.Redundant += shared.workers[i].Stats().Redundant
		stats.Unsure += shared.workers[i].Stats().Unsure
		stats.Applied += shared.workers[i].Stats().Applied
		read.Warm += shared.readers[i].Stats().Warm
		read.Cold += shared.readers[i].Stats().Cold
	}
	if stats.Redundant == 0 || stats.Unsure == 0 || stats.Applied == 0 || read.Warm == 0 || read.Cold == 0 {
		t.Errorf("not all was tried: %+v, %+v", stats, read)
	}
}

// model is the service and the reference, side by side.
type model struct {
	*lab
	replica *redistest.Server
	workers []worker
	readers []*newlyunread.NewlyUnread

	ids     []id.User
	people  map[id.User]*reader
	groups  []id.Channel
	members map[id.Channel][]id.User
}

// reader is somebody, and who wrote to them, in order.
type reader struct {
	arrived      []id.User
	acknowledged int
	shown        []shownAt
	muted        map[id.Channel]bool
}

// shownAt is what somebody was shown while all was at rest: all that had arrived.
type shownAt struct {
	asOf newlyunread.Position
	at   int
}

func (m *model) somebody(r *rapid.T) id.User { return rapid.SampledFrom(m.ids).Draw(r, "person") }

func (m *model) icons(r *rapid.T) *newlyunread.NewlyUnread {
	return rapid.SampledFrom(m.readers).Draw(r, "reader")
}

func (m *model) wake() {
	for _, w := range m.workers {
		w.Wake()
	}
}

func (m *model) send(r *rapid.T) {
	group := rapid.SampledFrom(m.groups).Draw(r, "group")
	sender := rapid.SampledFrom(m.members[group]).Draw(r, "sender")
	for range rapid.IntRange(1, 3).Draw(r, "messages") {
		m.lab.send(sender, group)
		for _, user := range m.members[group] {
			if user != sender && !m.people[user].muted[group] {
				m.people[user].arrived = append(m.people[user].arrived, sender)
			}
		}
	}
	m.wake()
}

func (m *model) mute(r *rapid.T) {
	group := rapid.SampledFrom(m.groups).Draw(r, "group")
	who := rapid.SampledFrom(m.members[group]).Draw(r, "person")
	muted := !m.people[who].muted[group]
	m.settle() // the order in which messages arrive that wait at a mute is not that of sending
	if _, err := m.readStates.SetMuted(r.Context(), who, group, muted, readstate.DefaultCap); err != nil {
		r.Fatal(err)
	}
	m.people[who].muted[group] = muted
}

// glance looks while messages are on their way: what it is shown cannot be told, but it makes copies then.
func (m *model) glance(r *rapid.T) {
	if _, err := m.icons(r).Get(r.Context(), m.somebody(r), 10); err != nil {
		r.Fatal(err)
	}
}

func (m *model) look(r *rapid.T) { m.compare(r, m.somebody(r)) }

// compare compares what somebody is shown while all is at rest, and remembers it.
func (m *model) compare(r *rapid.T, who id.User) {
	m.wake()
	m.settle()
	reader := m.people[who]
	var want []id.User // newest first
	for _, sender := range slices.Backward(reader.arrived[reader.acknowledged:]) {
		if !slices.Contains(want, sender) {
			want = append(want, sender)
		}
	}
	shown, err := m.icons(r).Get(r.Context(), who, 10)
	if err != nil {
		r.Fatal(err)
	}
	truth, err := m.store.NewlyUnread(r.Context(), who, 10)
	if err != nil {
		r.Fatal(err)
	}
	got, stored := ids(shown), ids(newlyunread.Shown{Senders: truth.Senders})
	if !slices.Equal(stored, want) {
		r.Fatalf("the store says %v to %d, want %v", stored, who, want)
	}
	slices.Sort(got) // where writes are saved, the order of the latest is that of before
	slices.Sort(want)
	if !slices.Equal(got, want) || shown.Count() != len(want) {
		r.Fatalf("%d is shown %v, want %v", who, got, want)
	}
	reader.shown = append(reader.shown, shownAt{shown.AsOf, len(reader.arrived)})
}

func (m *model) acknowledge(r *rapid.T) {
	who := m.somebody(r)
	reader := m.people[who]
	if len(reader.shown) == 0 {
		return
	}
	shown := rapid.SampledFrom(reader.shown).Draw(r, "shown")
	if _, err := m.icons(r).Acknowledge(r.Context(), who, &shown.asOf, 10); err != nil {
		r.Fatal(err)
	}
	reader.acknowledged = max(reader.acknowledged, shown.at)
	m.wake()
}

// applyLate applies what was applied before, as a worker may that was thought dead.
func (m *model) applyLate(r *rapid.T) {
	who := m.somebody(r)
	rows, err := m.sql.Query(r.Context(), "SELECT sender, latest FROM arrival WHERE recipient = $1", int64(who))
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	change := newlyunread.Change{User: who}
	for rows.Next() {
		var sender, latest int64
		if err := rows.Scan(&sender, &latest); err != nil {
			r.Fatal(err)
		}
		change.Arrived = append(change.Arrived, newlyunread.Arrival{Recipient: who, Sender: id.User(sender), Position: newlyunread.Position(latest)})
	}
	if len(change.Arrived) == 0 {
		return
	}
	if err := m.icons(r).Projection.Apply(r.Context(), []newlyunread.Change{change}); err != nil {
		r.Fatal(err)
	}
}

func (m *model) begin(r *rapid.T) { // and dies of it
	if _, err := m.icons(r).Projection.Begin(r.Context(), m.somebody(r)); err != nil {
		r.Fatal(err)
	}
}

func (m *model) loseCopy(r *rapid.T) { m.raw.Del(r.Context(), copyKey(m.somebody(r))) }

func (m *model) loseMark(r *rapid.T) {
	m.raw.Del(r.Context(), markKey(newlyunread.PartitionOf(m.somebody(r))))
}

func (m *model) loseAll(r *rapid.T) { m.raw.FlushAll(r.Context()) }
