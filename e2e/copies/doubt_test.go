package copies_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

var errCut = errors.New("connection reset")

// frail is what a worker does to its stores, where a call may fail. Its switches are for any moment.
type frail struct {
	newlyunread.Queue
	newlyunread.Projection

	loseStored atomic.Bool // the answer to the next batch that stores something is lost
	noApply    atomic.Bool // Redis takes nothing
	noDrop     atomic.Bool
	noBeat     atomic.Bool // the next beat hangs until it is given up
	beating    chan struct{}
	once       sync.Once
	failed     atomic.Bool // something was not applied
}

func newFrail(l *lab) *frail {
	return &frail{Queue: l.store, Projection: l.copies(), beating: make(chan struct{})}
}

func (f *frail) Project(ctx context.Context, lease newlyunread.Lease, batch int, call newlyunread.RollCall) (newlyunread.Done, error) {
	done, err := f.Queue.Project(ctx, lease, batch, call)
	if err == nil && len(done.Arrived) > 0 && f.loseStored.CompareAndSwap(true, false) {
		f.failed.Store(true)
		return newlyunread.Done{}, errCut
	}
	return done, err
}

func (f *frail) KeepWorker(ctx context.Context, worker string, within time.Duration) (int, string, error) {
	if f.noBeat.Load() {
		f.once.Do(func() { close(f.beating) })
		<-ctx.Done()
		return 0, "", ctx.Err()
	}
	return f.Queue.KeepWorker(ctx, worker, within)
}

func (f *frail) Apply(ctx context.Context, changes []newlyunread.Change) error {
	if f.noApply.Load() {
		f.failed.Store(true)
		return errCut
	}
	return f.Projection.Apply(ctx, changes)
}

func (f *frail) Mark(ctx context.Context, marks []newlyunread.Mark) error {
	if f.noApply.Load() {
		return errCut
	}
	return f.Projection.Mark(ctx, marks)
}

func (f *frail) Drop(ctx context.Context, users []id.User) (int, error) {
	if f.noDrop.Load() {
		return 0, errCut
	}
	return f.Projection.Drop(ctx, users)
}

// zoe is in the last partition, which a worker gives back first.
const zoe id.User = 63

// settlesTo waits until copies are trusted again, and show these.
func (l *lab) settlesTo(icons *newlyunread.NewlyUnread, who id.User, senders ...id.User) {
	l.t.Helper()
	l.settle()
	eventually(l.t, "a copy shows them", func() bool {
		before := icons.Stats().Warm
		shown, err := icons.Get(l.t.Context(), who, 10)
		if err != nil {
			l.t.Fatal(err)
		}
		return icons.Stats().Warm > before && len(shown.Senders) == len(senders)
	})
	l.shows(icons, who, senders...)
}

// A batch is stored, and the worker is not told: the next one must not cover that the copies lack it.
func TestTheAnswerToABatchIsLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	f := newFrail(l)
	w := l.work(newlyunread.WorkerConfig{Queue: f, Projection: f})
	icons := l.icons(l.copies())
	group := l.group(anna, ben, cleo, dina)
	l.send(ben, group)
	l.settle()
	l.warm(icons, anna, ben)
	f.loseStored.Store(true)
	l.send(cleo, group)
	w.Wake()
	eventually(t, "an answer is lost", f.failed.Load)
	l.send(dina, group)
	w.Wake()
	l.settlesTo(icons, anna, dina, cleo, ben)
}

// A worker that could not write to a copy ends, or gives partitions to another: the doubt goes with them.
func TestDoubtIsHandedOver(t *testing.T) {
	t.Parallel()
	for name, hand := range map[string]func(l *lab, f *frail, w worker){
		"at its end":           func(_ *lab, _ *frail, w worker) { w.stop() },
		"at its end in a beat": func(_ *lab, f *frail, w worker) { f.noBeat.Store(true); <-f.beating; w.stop() },
		"as another's share":   func(*lab, *frail, worker) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			f := newFrail(l)
			w := l.work(newlyunread.WorkerConfig{Queue: f, Projection: f})
			icons := l.icons(l.copies())
			group := l.group(zoe, ben, cleo, dina)
			l.send(ben, group)
			l.settle()
			l.warm(icons, zoe, ben)
			f.noApply.Store(true)
			l.send(cleo, group)
			w.Wake()
			eventually(t, "a copy was not written to", f.failed.Load)
			hand(l, f, w)
			for range 3 {
				l.work(newlyunread.WorkerConfig{})
			}
			eventually(t, "others have the partition", func() bool {
				var others bool
				err := l.sql.QueryRow(t.Context(), "SELECT fence > 1 FROM lease WHERE partition = $1", newlyunread.PartitionOf(zoe)).Scan(&others)
				if err != nil {
					t.Fatal(err)
				}
				return others
			})
			l.send(dina, group)
			l.settlesTo(icons, zoe, dina, cleo, ben)
		})
	}
}

// An acknowledge whose process could not drop the copy: a worker does.
func TestACopyIsNotDropped(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	f := newFrail(l)
	f.noDrop.Store(true)
	failing, icons := l.icons(f), l.icons(l.copies())
	l.send(ben, l.group(anna, ben))
	l.settle()
	shown := l.warm(icons, anna, ben)
	if err := failing.Seen(t.Context(), anna, &shown.AsOf); err != nil {
		t.Fatal(err)
	}
	l.settlesTo(icons, anna)
}

// While a copy is being made, what is in it already may be acknowledged: nothing is redundant because of it.
func TestNothingIsRedundantInACopyThatIsBeingMade(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	replica := l.replicate()
	copies, check := l.copies(), newlyUnreadCheck(l, replica.URL())
	if _, err := copies.Begin(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	now := newlyunread.Position(time.Now().UnixMicro())
	first := []newlyunread.Change{{User: anna, Arrived: []newlyunread.Arrival{{Recipient: anna, Sender: ben, Position: now}}}}
	if err := copies.Apply(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	again := []newlyunread.Change{{User: anna, Arrived: []newlyunread.Arrival{{Recipient: anna, Sender: ben, Position: now + 1}}}}
	eventually(t, "the replica is asked", func() bool {
		needed, sure, err := check.Redundant(t.Context(), newlyunread.PartitionOf(anna), again, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if sure && len(needed) != 1 {
			t.Fatalf("needed are %+v", needed)
		}
		return sure
	})
}

// Nor is one that the replica does not show: it may hide by its clock what is still there.
func TestNothingIsRedundantWhereThereIsNoCopy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	check := newlyUnreadCheck(l, l.replicate().URL())
	change := []newlyunread.Change{{User: anna, Arrived: []newlyunread.Arrival{{Recipient: anna, Sender: ben, Position: 1}}}}
	eventually(t, "the replica is asked", func() bool {
		needed, sure, err := check.Redundant(t.Context(), newlyunread.PartitionOf(anna), change, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if sure && len(needed) != 1 {
			t.Fatalf("needed are %+v", needed)
		}
		return sure
	})
}

// An acknowledge while Redis does not answer: when it does again, nobody comes back in the process that acknowledged.
func TestAcknowledgedWhileRedisIsPaused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	l.send(ben, l.group(anna, ben))
	l.settle()
	shown := l.warm(icons, anna, ben)
	w.stop() // nobody else drops the copy
	l.redis.Pause()
	if err := icons.Seen(t.Context(), anna, &shown.AsOf); err != nil {
		t.Fatal(err)
	}
	l.redis.Resume()
	eventually(t, "Redis is read again", func() bool {
		l.shows(icons, anna)
		return icons.Stats().Cold > 1 || icons.Stats().Warm > 2
	})
	l.shows(icons, anna)
}

// A key that is of another kind takes copies from nobody, and goes.
func TestAKeyOfAnotherKind(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	group := l.group(anna, ben, cleo)
	l.send(ben, group)
	l.settle()
	l.warm(icons, anna, ben)
	l.raw.Set(t.Context(), copyKey(anna), "nonsense", 0)
	l.send(cleo, group)
	w.Wake()
	l.settlesTo(icons, anna, cleo, ben)
	l.raw.Set(t.Context(), copyKey(anna), "nonsense", 0)
	l.settlesTo(icons, anna, cleo, ben)
	if stats := icons.Stats(); stats.Away > 0 {
		t.Errorf("%+v", stats)
	}
}

// Redis fails over and back, with what the other had of old: nothing of that is trusted.
func TestN18FailoverAndBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	door := newDoor(t, l.redis)
	behind := func() *redis.NewlyUnread { return redis.NewNewlyUnread(client(t, door.url())) }
	w := l.work(newlyunread.WorkerConfig{Projection: behind()})
	icons := l.icons(behind())
	group := l.group(anna, ben, cleo, dina)
	l.send(ben, group)
	l.settle()
	l.warm(icons, anna, ben)
	other := l.replicate()
	l.promote(other) // it has the copy, and what comes now it has not
	l.send(cleo, group)
	w.Wake()
	l.settle()
	l.warm(icons, anna, cleo, ben)
	door.to(other)
	eventually(t, "the other is read", func() bool {
		shown, err := icons.Get(t.Context(), anna, 10)
		return err == nil && shown.Count() == 2 && icons.Stats().Cold > 1
	})
	eventually(t, "the worker is there", func() bool {
		return connect(t, other.URL()).Exists(t.Context(), markKey(newlyunread.PartitionOf(anna))).Val() == 1 && w.Stats().Generations > 0
	})
	l.follow(l.redis, other)
	l.promote(l.redis)
	door.to(l.redis)
	l.send(dina, group)
	w.Wake()
	eventually(t, "all count", func() bool {
		shown, err := icons.Get(t.Context(), anna, 10)
		return err == nil && shown.Count() == 3
	})
	l.settlesTo(icons, anna, dina, cleo, ben)
}

// door is an address behind which there is one Redis or another.
type door struct {
	t      *testing.T
	listen net.Listener
	mu     sync.Mutex
	open   []net.Conn
	target string
}

func newDoor(t *testing.T, target *redistest.Server) *door {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, listen: listen, target: address(t, target)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { d.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listen.Close()
		d.shut()
		serving.Wait()
	})
	return d
}

func address(t *testing.T, server *redistest.Server) string {
	t.Helper()
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return at.Host
}

func (d *door) url() string { return "redis://" + d.listen.Addr().String() }

func (d *door) pass(in net.Conn) {
	d.mu.Lock()
	out, err := net.Dial("tcp", d.target) //nolint:noctx // it is of this machine
	if err != nil {
		d.mu.Unlock()
		_ = in.Close()
		return
	}
	d.open = append(d.open, in, out)
	d.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = in.Close(), out.Close()
		})
	}
	both.Wait()
}

func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.open {
		_ = conn.Close()
	}
	d.open = nil
}

// to has all connections end, and new ones lead to another server.
func (d *door) to(target *redistest.Server) {
	d.t.Helper()
	at := address(d.t, target)
	d.mu.Lock()
	d.target = at
	d.mu.Unlock()
	d.shut()
}
