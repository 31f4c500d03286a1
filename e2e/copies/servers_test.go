package copies_test

import (
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

// N18: Redis comes back from an old snapshot.
func TestN18AnOldSnapshot(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	group := l.group(anna, ben, cleo)
	l.send(ben, group)
	l.settle()
	l.warm(icons, anna, ben)
	if err := l.raw.Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	l.acknowledge(icons, anna, l.shows(icons, anna, ben).AsOf)
	l.settle()
	l.warm(icons, anna)
	l.redis.Kill()
	l.redis.Start()
	if n := l.raw.Exists(t.Context(), copyKey(anna)).Val(); n != 1 {
		t.Fatal("the snapshot is not there")
	}
	for range 50 {
		l.shows(icons, anna)
	}
	l.send(cleo, group)
	eventually(t, "who writes then counts", func() bool {
		shown, err := icons.Get(t.Context(), anna, 10)
		return err == nil && shown.Count() == 1
	})
	l.settle()
	l.warm(icons, anna, cleo)
}

// N18: a replica without the last writes takes over.
func TestN18AReplicaTakesOver(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	replica := l.replicate()
	primary := l.redis
	l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	group := l.group(anna, ben, cleo)
	l.send(ben, group)
	l.settle()
	l.warm(icons, anna, ben)
	eventually(t, "the replica has the copy", func() bool {
		return connect(t, replica.URL()).Exists(t.Context(), copyKey(anna)).Val() == 1
	})
	l.promote(replica) // from now on it lacks what is written
	l.send(cleo, group)
	l.settle()
	l.warm(icons, anna, cleo, ben)
	primary.Kill()
	l.redis = replica
	l.raw = connect(t, replica.URL())
	other := l.icons(l.copies()) // of a process that is told the new address
	l.shows(other, anna, cleo, ben)
	l.work(newlyunread.WorkerConfig{})
	l.send(dina, l.group(anna, dina))
	eventually(t, "who writes then counts", func() bool {
		shown, err := other.Get(t.Context(), anna, 10)
		return err == nil && shown.Count() == 3
	})
}

// N18: Redis evicts whatever it likes.
func TestN18Evictions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	for i := range id.User(100) {
		reader, writer := 1000+2*i, 1001+2*i
		l.send(writer, l.group(reader, writer))
	}
	l.settle()
	look := func() {
		t.Helper()
		for i := range id.User(100) {
			l.shows(icons, 1000+2*i, 1001+2*i)
		}
	}
	look()
	l.raw.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-random")
	l.raw.ConfigSet(t.Context(), "maxmemory", memory(t, l)(-10<<10))
	for range 5 {
		look()
	}
	if !contains(l.raw.Info(t.Context(), "stats").Val(), "evicted_keys:0\r") {
		return
	}
	t.Error("nothing was evicted")
}

// Where Redis takes no more, copies that could not be written to are trusted by nobody.
func TestRedisIsFull(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	group := l.group(anna, ben, cleo)
	l.send(ben, group)
	l.settle()
	l.warm(icons, anna, ben)
	l.raw.ConfigSet(t.Context(), "maxmemory", "1")
	l.send(cleo, group)
	eventually(t, "who writes then counts", func() bool {
		shown, err := icons.Get(t.Context(), anna, 10)
		return err == nil && shown.Count() == 2
	})
	l.raw.ConfigSet(t.Context(), "maxmemory", "0")
	l.settlesTo(icons, anna, cleo, ben) // what cannot be written to is trusted until its mark is over
}

// Copies of a database that was restored to before them are trusted by nobody.
func TestAnotherStoreHasOtherCopies(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := l.work(newlyunread.WorkerConfig{})
	icons := l.icons(l.copies())
	l.send(ben, l.group(anna, ben))
	l.settle()
	l.warm(icons, anna, ben)
	w.stop()
	restored := newLab(t) // nothing was sent there
	restored.redis, restored.raw = l.redis, l.raw
	restored.work(newlyunread.WorkerConfig{})
	others := restored.icons(restored.copies())
	eventually(t, "nobody is shown", func() bool {
		shown, err := others.Get(t.Context(), anna, 10)
		return err == nil && shown.Count() == 0
	})
	restored.warm(others, anna)
	// Both may share a Redis. It is of less use then, and nothing is mixed up.
	l.work(newlyunread.WorkerConfig{})
	for range 100 {
		l.shows(icons, anna, ben)
		restored.shows(others, anna)
	}
}
