package copies_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// While people write, look and acknowledge, Redis is emptied, restarted, filled up and paused. Nobody waits for it for
// long, no call fails, and in the end everybody is shown what Postgres says.
func TestUnderLoad(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ begin, end func(l *lab) }{
		"emptied": {
			begin: func(l *lab) { l.raw.FlushAll(l.t.Context()) },
			end:   func(*lab) {},
		},
		"restarted": {
			begin: func(l *lab) { l.redis.Kill() },
			end:   func(l *lab) { l.redis.Start() },
		},
		"full": {
			begin: func(l *lab) { l.raw.ConfigSet(l.t.Context(), "maxmemory", "1") },
			end:   func(l *lab) { l.raw.ConfigSet(l.t.Context(), "maxmemory", "0") },
		},
		"paused": { // its connections stay open, and nothing comes
			begin: func(l *lab) { l.redis.Pause() },
			end:   func(l *lab) { l.redis.Resume() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const people, faults = 8, 3
			l := newLab(t)
			var members []id.User
			for i := range id.User(people) {
				members = append(members, i+1)
			}
			group := l.group(members...)
			w := l.work(newlyunread.WorkerConfig{})
			icons := []*newlyunread.NewlyUnread{l.icons(l.copies()), l.icons(l.copies())}
			var enough atomic.Bool
			var busy errgroup.Group
			var longest, looks atomic.Int64
			for i, who := range members {
				dice := rand.New(rand.NewPCG(1, uint64(i)))
				busy.Go(func() error {
					for !enough.Load() {
						_, err := l.channels.Send(t.Context(), person.Viewer{ID: who}, channel.Draft{ChannelID: group, Body: "hello"}, readstate.DefaultCap)
						if err != nil {
							return err
						}
						w.Wake()
						begun := time.Now()
						shown, err := icons[dice.IntN(2)].Get(t.Context(), who, 10)
						if err != nil {
							return err
						}
						longest.Store(max(longest.Load(), int64(time.Since(begun))))
						looks.Add(1)
						if dice.IntN(4) == 0 {
							if _, err := icons[dice.IntN(2)].Acknowledge(t.Context(), who, &shown.AsOf, 10); err != nil {
								return err
							}
						}
					}
					return nil
				})
			}
			for range faults {
				some := looks.Load() + 100
				eventually(t, "people look", func() bool { return looks.Load() > some })
				fault.begin(l)
				some = looks.Load() + 100
				eventually(t, "people look in the fault", func() bool { return looks.Load() > some })
				fault.end(l)
			}
			enough.Store(true)
			if err := busy.Wait(); err != nil {
				t.Fatal(err)
			}
			if most := 2 * time.Second; time.Duration(longest.Load()) > most {
				t.Errorf("a look took %v", time.Duration(longest.Load()))
			}
			l.settle()
			for _, who := range members {
				truth, err := l.store.NewlyUnread(t.Context(), who, 100)
				if err != nil {
					t.Fatal(err)
				}
				want := ids(newlyunread.Shown{Senders: truth.Senders})
				l.shows(icons[0], who, want...)
				l.warm(icons[1], who, want...)
			}
			drift, err := newlyunread.Audit{Store: l.store, Projection: icons[0].Projection}.DriftOf(t.Context(), members)
			if err != nil || len(drift) > 0 {
				t.Errorf("drift: %v, %v", drift, err)
			}
		})
	}
}

// Ten thousand messages of one sender are one sender, one row and, coalesced, few writes.
func TestOneSenderWritesALot(t *testing.T) {
	t.Parallel()
	const messages = 10_000
	l := newLab(t)
	w := l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	l.send(ben, l.group(anna, ben))
	l.settle()
	l.warm(icons, anna, ben)
	before := w.Stats()
	l.exec(`INSERT INTO arrival_event (partition, recipient, sender) SELECT arrival_partition(1), 1, 2 FROM generate_series(1, $1)`, messages)
	w.Wake()
	l.settle()
	shown := l.warm(icons, anna, ben)
	var rows int
	if err := l.sql.QueryRow(t.Context(), "SELECT count(*) FROM arrival WHERE recipient = 1").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
	after := w.Stats()
	if stored, applied := after.Stored-before.Stored, after.Applied-before.Applied; stored != messages || applied > messages/100 {
		t.Errorf("%d stored, %d applied", stored, applied)
	}
	if after.Generations == before.Generations && after.Coalesced-before.Coalesced < messages*9/10 { // or Redis was slow
		t.Errorf("%d coalesced", after.Coalesced-before.Coalesced)
	}
	l.acknowledge(icons, anna, shown.AsOf)
	l.settle()
	l.warm(icons, anna)
}

// Each punching bag can be switched off, and then absorbs nothing.
func TestWithoutPunchingBags(t *testing.T) {
	t.Parallel()
	const messages = 500
	l := newLab(t)
	w := l.work(newlyunread.WorkerConfig{Uncoalesced: true})
	icons := l.icons(l.copies())
	l.send(ben, l.group(anna, ben))
	l.settle()
	l.warm(icons, anna, ben)
	before := w.Stats()
	l.exec(`INSERT INTO arrival_event (partition, recipient, sender) SELECT arrival_partition(1), 1, 2 FROM generate_series(1, $1)`, messages)
	w.Wake()
	l.settle()
	after := w.Stats()
	if applied := after.Applied - before.Applied; applied != messages || after.Coalesced != 0 || after.Redundant != 0 {
		t.Errorf("%d applied, %d coalesced, %d redundant", applied, after.Coalesced, after.Redundant)
	}
	l.warm(icons, anna, ben)
}

// Workers that share partitions, and hand them over again and again, leave copies as good as one does.
func TestWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	group := l.group(anna, ben, cleo, dina)
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			l.send([]id.User{ben, cleo, dina}[i%3], group)
			if _, err := icons.Get(t.Context(), anna, 10); err != nil {
				t.Error(err)
			}
		}
	})
	for range 3 {
		other := l.work(newlyunread.WorkerConfig{})
		eventually(t, "they share", func() bool {
			var owners int
			if err := l.sql.QueryRow(t.Context(), "SELECT count(DISTINCT owner) FROM lease WHERE until > now()").Scan(&owners); err != nil {
				t.Fatal(err)
			}
			return owners == 2
		})
		other.stop()
	}
	close(done)
	writing.Wait()
	l.settle()
	truth, err := l.store.NewlyUnread(t.Context(), anna, 100)
	if err != nil {
		t.Fatal(err)
	}
	l.warm(icons, anna, ids(newlyunread.Shown{Senders: truth.Senders})...)
}
