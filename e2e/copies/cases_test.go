package copies_test

import (
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

func TestPartitionsAreThoseOfPostgres(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, user := range []id.User{1, 2, 63, 64, 65, 4095, 1 << 40, 1<<60 + 12345, 1<<63 - 1} {
		var want int
		if err := l.sql.QueryRow(t.Context(), "SELECT arrival_partition($1)", int64(user)).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := newlyunread.PartitionOf(user); int(got) != want {
			t.Errorf("%d is in %d, want %d", user, got, want)
		}
	}
}

// A warm read asks Redis two things in one go, and Postgres nothing.
func TestAWarmReadCostsTwoCommands(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w, icons := l.work(newlyunread.WorkerConfig{}), l.icons(l.copies())
	l.send(ben, l.group(anna, ben))
	l.settle()
	l.warm(icons, anna, ben)
	w.stop()
	l.exec("ALTER TABLE arrival RENAME TO gone")
	if err := l.raw.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	l.shows(icons, anna, ben)
	l.exec("ALTER TABLE gone RENAME TO arrival")
	stats := connect(t, l.redis.URL()).Info(t.Context(), "commandstats").Val()
	for _, line := range []string{"cmdstat_get:calls=1,", "cmdstat_zrevrange:calls=1,"} {
		if !contains(stats, line) {
			t.Errorf("no %q in\n%s", line, stats)
		}
	}
	for _, other := range []string{"cmdstat_eval", "cmdstat_zadd", "cmdstat_zcard", "cmdstat_set"} {
		if contains(stats, other) {
			t.Errorf("%q in\n%s", other, stats)
		}
	}
}

// People who never look take no room.
func TestWhoNeverLooksHasNoCopy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	l.send(ben, l.group(anna, ben))
	l.settle()
	if n := l.raw.Exists(t.Context(), copyKey(anna)).Val(); n != 0 {
		t.Error("there is a copy")
	}
}

// N06: an event that is applied twice, and late, after a newer acknowledge, brings nobody back.
func TestN06LateEvents(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	copies := l.copies()
	icons := l.icons(copies)
	group := l.group(anna, ben, cleo)
	l.send(ben, group)
	l.send(cleo, group)
	l.settle()
	shown := l.warm(icons, anna, cleo, ben)
	var late []newlyunread.Arrival
	for _, s := range shown.Senders {
		late = append(late, newlyunread.Arrival{Recipient: anna, Sender: s.UserID, Position: newlyunread.Position(s.LatestAt.UnixMicro())})
	}
	apply := func() {
		t.Helper()
		if err := copies.Apply(t.Context(), []newlyunread.Change{{User: anna, Arrived: late}}); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	l.warm(icons, anna, cleo, ben)
	l.acknowledge(icons, anna, shown.AsOf)
	l.settle()
	l.warm(icons, anna)
	apply()
	l.warm(icons, anna)
}

// N07: Redis loses the key, its mark, or all, or starts anew: the next read is right.
func TestN07WhatRedisLoses(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(l *lab){
		"a copy": func(l *lab) { l.raw.Del(l.t.Context(), copyKey(anna)) },
		"a mark": func(l *lab) { l.raw.Del(l.t.Context(), markKey(newlyunread.PartitionOf(anna))) },
		"all":    func(l *lab) { l.raw.FlushAll(l.t.Context()) },
		"itself": func(l *lab) { l.redis.Kill() },
		"all in a restart": func(l *lab) {
			l.redis.Kill()
			l.redis.Start()
		},
		"its scripts": func(l *lab) { l.raw.ScriptFlush(l.t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.work(newlyunread.WorkerConfig{})
			icons := l.icons(l.copies())
			group := l.group(anna, ben, cleo)
			l.send(ben, group)
			l.settle()
			l.warm(icons, anna, ben)
			lose(l)
			l.shows(icons, anna, ben)
			l.send(cleo, group)
			eventually(t, "who writes then counts", func() bool {
				shown, err := icons.Get(t.Context(), anna, 10)
				return err == nil && shown.Count() == 2
			})
			l.acknowledge(icons, anna, l.shows(icons, anna, cleo, ben).AsOf)
			l.shows(icons, anna)
			if name == "itself" {
				l.redis.Start()
			}
			l.settle()
			l.warm(icons, anna)
			l.send(ben, group)
			l.settle()
			l.warm(icons, anna, ben)
		})
	}
}

// N08: the replica that is asked is paused or cut off; somebody acknowledges, and a sender writes again: it counts.
func TestN08ALateReplica(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(l *lab, replica interface{ Pause() }){
		"paused":  func(_ *lab, replica interface{ Pause() }) { replica.Pause() },
		"cut off": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			replica := l.replicate()
			check := newlyUnreadCheck(l, replica.URL())
			w := l.work(newlyunread.WorkerConfig{Check: check, Recency: time.Hour})
			icons := l.icons(l.copies())
			group := l.group(anna, ben)
			l.send(ben, group)
			l.settle()
			shown := l.warm(icons, anna, ben)
			l.send(ben, group)
			l.settle()
			eventually(t, "a replica that follows saves writes", func() bool {
				if w.Stats().Redundant > 0 {
					return true
				}
				l.send(ben, group)
				l.settle()
				return false
			})
			if fail != nil {
				fail(l, replica)
			} else {
				l.promote(replica)
			}
			l.acknowledge(icons, anna, shown.AsOf)
			l.shows(icons, anna, ben) // they wrote again
			l.settle()
			l.acknowledge(icons, anna, l.warm(icons, anna, ben).AsOf)
			l.settle()
			l.warm(icons, anna)
			l.send(ben, group)
			l.settle()
			l.warm(icons, anna, ben)
		})
	}
}

// N13: what was not written because it was redundant is acknowledged with what was shown.
func TestN13AcknowledgingWhatWasNotWritten(t *testing.T) {
	t.Parallel()
	l, icons, group := redundant(t)
	l.acknowledge(icons, anna, l.warm(icons, anna, ben).AsOf)
	l.shows(icons, anna)
	l.settle()
	l.warm(icons, anna)
	l.send(ben, group)
	l.settle()
	l.warm(icons, anna, ben)
}

// N14: it was not written because it was redundant, and still counts when what was shown before it is acknowledged.
func TestN14WhatWasNotWrittenCounts(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	replica := l.replicate()
	w := l.work(newlyunread.WorkerConfig{Check: newlyUnreadCheck(l, replica.URL()), Recency: time.Hour})
	icons, group := l.icons(l.copies()), l.group(anna, ben)
	l.send(ben, group)
	l.settle()
	first := l.warm(icons, anna, ben)
	eventually(t, "a write is saved", func() bool {
		l.send(ben, group)
		l.settle()
		return w.Stats().Redundant > 0
	})
	l.acknowledge(icons, anna, first.AsOf)
	l.shows(icons, anna, ben)
	l.settle()
	l.warm(icons, anna, ben)
}

// redundant has anna's copy lack a later message of ben's, because it has one of a moment before.
func redundant(t *testing.T) (*lab, *newlyunread.NewlyUnread, id.Channel) {
	t.Helper()
	l := newLab(t)
	replica := l.replicate()
	w := l.work(newlyunread.WorkerConfig{Check: newlyUnreadCheck(l, replica.URL()), Recency: time.Hour})
	icons, group := l.icons(l.copies()), l.group(anna, ben)
	l.send(ben, group)
	l.settle()
	first := l.warm(icons, anna, ben)
	eventually(t, "a write is saved", func() bool {
		l.send(ben, group)
		l.settle()
		return w.Stats().Redundant > 0
	})
	if last := l.warm(icons, anna, ben); last.AsOf <= first.AsOf {
		t.Fatalf("shown up to %d, and before that up to %d", last.AsOf, first.AsOf)
	}
	return l, icons, group
}

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
	l.warm(icons, anna, cleo, ben)
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

// Far more write than a copy has room for.
func TestMoreSendersThanACopyHolds(t *testing.T) {
	t.Parallel()
	const people = newlyunread.MaxKept + 40
	l := newLab(t)
	l.work(newlyunread.WorkerConfig{})
	copies := l.copies()
	icons := l.icons(copies)
	members := []id.User{anna}
	for i := range id.User(people) {
		members = append(members, 100+i)
	}
	write := func(some []id.User) {
		for i := 0; i < len(some); i += 50 { // groups that are small enough to count
			group := l.group(append([]id.User{anna}, some[i:min(i+50, len(some))]...)...)
			for _, sender := range some[i:min(i+50, len(some))] {
				l.send(sender, group)
				l.settleNow()
			}
		}
	}
	write(members[1:])
	l.settle()
	full := func(count int) newlyunread.Shown {
		t.Helper()
		shown, err := icons.Get(t.Context(), anna, 100)
		if err != nil {
			t.Fatal(err)
		}
		all, err := icons.Get(t.Context(), anna, newlyunread.MaxFirst)
		if err != nil {
			t.Fatal(err)
		}
		if len(all.Senders) != count || shown.Label() != all.Label() || shown.Senders[0] != all.Senders[0] {
			t.Fatalf("%d senders, %s; %s, want %d", len(all.Senders), all.Label(), shown.Label(), count)
		}
		return all
	}
	full(people)
	all := full(people)
	if n := l.raw.ZCard(t.Context(), copyKey(anna)).Val(); n > newlyunread.MaxKept+2 {
		t.Errorf("a copy of %d", n)
	}
	if encoding := l.raw.ObjectEncoding(t.Context(), copyKey(anna)).Val(); encoding != "listpack" {
		t.Errorf("a copy is kept as a %s", encoding)
	}
	// All but the newest 20.
	asOf := newlyunread.Position(all.Senders[20].LatestAt.UnixMicro())
	if shown := l.acknowledge(icons, anna, asOf); shown.Count() != 20 {
		t.Errorf("shown %d, want 20", shown.Count())
	}
	l.settle()
	if shown := l.shows(icons, anna, ids(l.warmAny(icons, anna))...); shown.Count() != 20 {
		t.Errorf("shown %d, want 20", shown.Count())
	}
}
