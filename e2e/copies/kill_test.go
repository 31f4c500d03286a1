package copies_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

var errKilled = errors.New("killed")

// mortal is what a process does to its stores, until it dies of a step: before it, or after it with nobody told.
type mortal struct {
	newlyunread.Queue
	newlyunread.Projection

	fatal  string // "before Apply", say
	armed  atomic.Bool
	killed chan struct{}
	once   sync.Once
}

func mortalAt(queue newlyunread.Queue, copies newlyunread.Projection, fatal string) *mortal {
	return &mortal{Queue: queue, Projection: copies, fatal: fatal, killed: make(chan struct{})}
}

func (m *mortal) dead() bool {
	select {
	case <-m.killed:
		return true
	default:
		return false
	}
}

func (m *mortal) step(name string, do func() error) error {
	for _, at := range []string{"before ", "after "} {
		if m.dead() {
			return errKilled
		}
		if m.armed.Load() && m.fatal == at+name {
			m.once.Do(func() { close(m.killed) })
			return errKilled
		}
		if at == "before " {
			if err := do(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *mortal) KeepWorker(ctx context.Context, worker string, within time.Duration) (living int, store string, err error) {
	err = m.step("KeepWorker", func() (err error) {
		living, store, err = m.Queue.KeepWorker(ctx, worker, within)
		return err
	})
	return living, store, err
}

func (m *mortal) ForgetWorker(ctx context.Context, worker string, settled []newlyunread.Partition) error {
	return m.step("ForgetWorker", func() error { return m.Queue.ForgetWorker(ctx, worker, settled) })
}

func (m *mortal) BeginGeneration(ctx context.Context, lease newlyunread.Lease) (generation int64, newest newlyunread.Position, held bool, err error) {
	err = m.step("BeginGeneration", func() (err error) {
		generation, newest, held, err = m.Queue.BeginGeneration(ctx, lease)
		return err
	})
	return generation, newest, held, err
}

func (m *mortal) Relay(ctx context.Context, lease newlyunread.Lease, batch int) (done newlyunread.Done, err error) {
	err = m.step("Relay", func() (err error) {
		done, err = m.Queue.Relay(ctx, lease, batch)
		return err
	})
	return done, err
}

func (m *mortal) Project(ctx context.Context, lease newlyunread.Lease, batch int, call newlyunread.RollCall) (done newlyunread.Done, err error) {
	err = m.step("Project", func() (err error) {
		done, err = m.Queue.Project(ctx, lease, batch, call)
		return err
	})
	return done, err
}

func (m *mortal) Begin(ctx context.Context, user id.User) (note string, err error) {
	err = m.step("Begin", func() (err error) {
		note, err = m.Projection.Begin(ctx, user)
		return err
	})
	return note, err
}

func (m *mortal) Finish(ctx context.Context, user id.User, note string, s newlyunread.Snapshot) error {
	return m.step("Finish", func() error { return m.Projection.Finish(ctx, user, note, s) })
}

func (m *mortal) Apply(ctx context.Context, changes []newlyunread.Change) error {
	return m.step("Apply", func() error { return m.Projection.Apply(ctx, changes) })
}

func (m *mortal) Mark(ctx context.Context, marks []newlyunread.Mark) error {
	return m.step("Mark", func() error { return m.Projection.Mark(ctx, marks) })
}

// N11: a worker dies at any of its steps. Another does what it left, and the copies lack nothing.
func TestN11AWorkerDiesAtEachStep(t *testing.T) {
	t.Parallel()
	for _, fatal := range []string{
		"before Relay", "after Relay", "before Project", "after Project", "before Apply", "after Apply", "before Mark", "after Mark",
	} {
		t.Run(fatal, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			m := mortalAt(l.store, l.copies(), fatal)
			first := l.work(newlyunread.WorkerConfig{Queue: m, Projection: m})
			icons := l.icons(l.copies())
			group := l.group(anna, ben, cleo)
			l.send(ben, group)
			l.settle()
			l.warm(icons, anna, ben)
			m.armed.Store(true)
			l.send(cleo, group)
			first.Wake()
			select {
			case <-m.killed:
			case <-time.After(patience):
				t.Fatal("it lives")
			}
			first.stop()
			l.exec("UPDATE lease SET until = now() WHERE until > now()") // their time is over
			l.work(newlyunread.WorkerConfig{})
			eventually(t, "who wrote then counts", func() bool {
				shown, err := icons.Get(t.Context(), anna, 10)
				return err == nil && shown.Count() == 2
			})
			l.settle()
			l.acknowledge(icons, anna, l.warm(icons, anna, cleo, ben).AsOf)
			l.settle()
			l.warm(icons, anna)
		})
	}
}

// N17: a process dies while it makes a copy. Nobody trusts what it left.
func TestN17AReaderDiesAtEachStep(t *testing.T) {
	t.Parallel()
	for _, fatal := range []string{"before Begin", "after Begin", "before Finish", "after Finish"} {
		t.Run(fatal, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work(newlyunread.WorkerConfig{})
			group := l.group(anna, ben, cleo)
			l.send(ben, group)
			l.settle()
			m := mortalAt(l.store, l.copies(), fatal)
			m.armed.Store(true)
			dying, icons := l.icons(m), l.icons(l.copies())
			eventually(t, "it dies", func() bool {
				l.shows(dying, anna, ben) // whatever becomes of the copy
				return m.dead()
			})
			l.shows(icons, anna, ben)
			l.send(cleo, group)
			l.settle()
			l.shows(icons, anna, cleo, ben)
			l.warm(icons, anna, cleo, ben)
		})
	}
}

// A worker that was thought dead has a mark of before written late.
func TestALateMark(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	copies := l.copies()
	marks, err := l.store.Positions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mark := marks[0]
	for _, step := range []struct {
		generation int64
		position   newlyunread.Position
		behind     int // what is still missing for generation 2, position 20
	}{
		{1, 30, 1},
		{2, 10, 1},
		{2, 20, 0},
		{2, 10, 0},
		{1, 40, 0},
	} {
		mark.Generation.Number, mark.Position = step.generation, step.position
		if err := copies.Mark(t.Context(), []newlyunread.Mark{mark}); err != nil {
			t.Fatal(err)
		}
		want := mark
		want.Generation.Number, want.Position = 2, 20
		behind, err := copies.Behind(t.Context(), []newlyunread.Mark{want})
		if err != nil || len(behind) != step.behind {
			t.Errorf("after %+v: %d behind, %v, want %d", step, len(behind), err, step.behind)
		}
	}
}

// A message that comes while a copy is being made is in it, wherever in the making it comes.
func TestAMessageWhileACopyIsMade(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"before Begin", "after Begin", "before Finish", "after Finish"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work(newlyunread.WorkerConfig{})
			group := l.group(anna, ben, cleo)
			l.send(ben, group)
			l.settle()
			l.warm(l.icons(l.copies()), anna, ben) // there is somebody who keeps copies
			l.raw.Del(t.Context(), copyKey(anna))
			between := &interrupted{Projection: l.copies(), at: at, do: func() {
				l.send(cleo, group)
				l.settle()
			}}
			icons := l.icons(between)
			l.shows(icons, anna, ben) // which store there is, it learns from its first read
			if _, err := icons.Get(t.Context(), anna, 10); err != nil {
				t.Fatal(err)
			}
			if !between.done {
				t.Fatal("no copy was made")
			}
			l.shows(icons, anna, cleo, ben)
			l.warm(icons, anna, cleo, ben)
		})
	}
}

// So does an acknowledge.
func TestAnAcknowledgeWhileACopyIsMade(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"before Begin", "after Begin", "before Finish", "after Finish"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work(newlyunread.WorkerConfig{})
			l.send(ben, l.group(anna, ben))
			l.settle()
			other := l.icons(l.copies())
			shown := l.warm(other, anna, ben)
			l.raw.Del(t.Context(), copyKey(anna))
			between := &interrupted{Projection: l.copies(), at: at, do: func() {
				if err := other.Seen(t.Context(), anna, &shown.AsOf); err != nil {
					t.Error(err)
				}
			}}
			icons := l.icons(between)
			l.shows(icons, anna, ben) // which store there is, it learns from its first read
			if _, err := icons.Get(t.Context(), anna, 10); err != nil {
				t.Fatal(err)
			}
			if !between.done {
				t.Fatal("no copy was made")
			}
			l.shows(icons, anna)
			l.settle()
			l.warm(icons, anna)
		})
	}
}

// interrupted has something happen in the making of a copy, once.
type interrupted struct {
	newlyunread.Projection
	at   string
	do   func()
	done bool
}

func (i *interrupted) now(at string) {
	if at == i.at && !i.done {
		i.done = true
		i.do()
	}
}

func (i *interrupted) Begin(ctx context.Context, user id.User) (string, error) {
	ctx = context.WithoutCancel(ctx) // what happens meanwhile may take its time
	i.now("before Begin")
	note, err := i.Projection.Begin(ctx, user)
	i.now("after Begin")
	return note, err
}

func (i *interrupted) Finish(ctx context.Context, user id.User, note string, s newlyunread.Snapshot) error {
	ctx = context.WithoutCancel(ctx)
	i.now("before Finish")
	err := i.Projection.Finish(ctx, user, note, s)
	i.now("after Finish")
	return err
}
