package presence_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/presence"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

// Who comes and who leaves is known at once: nothing is renewed here, and nothing expires.
func TestComingAndGoing(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	p, look := start(t, server, presence.Config{Expiry: 2 * never, RenewEvery: never}), observe(t, server)
	p.Connected(anna)
	p.Connected(anna)
	p.Connected(cleo)
	look.awaits("two are connected", anna, cleo)
	p.Disconnected(anna)
	p.Disconnected(cleo)
	look.awaits("one has another connection", anna)
	p.Disconnected(anna)
	look.awaits("nobody is connected")
	if n := p.People(); n != 0 {
		t.Errorf("%d people are served", n)
	}
}

// The state that is reached in the end is the one noted, whatever the order of what came before.
func TestManyComeAndGoAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	p, look := start(t, server, presence.Config{Expiry: 2 * never, RenewEvery: never}), observe(t, server)
	var connections sync.WaitGroup
	for _, user := range []id.User{anna, ben, cleo} {
		for range 8 {
			connections.Go(func() {
				for range 500 {
					p.Connected(user)
					p.Disconnected(user)
				}
			})
		}
	}
	connections.Wait()
	p.Connected(ben)
	look.awaits("one has stayed", ben)
}

// An end takes away everybody, in more than one call, and also who left the moment before.
func TestTheEndOfAProcess(t *testing.T) {
	t.Parallel()
	const people = 1234
	server := redistest.New(t)
	p, look := start(t, server, presence.Config{}), observe(t, server)
	keys := func() int64 { return look.raw.DBSize(t.Context()).Val() }
	for user := range id.User(people) {
		p.Connected(user + 1)
	}
	eventually(t, "all are connected", func() bool { return keys() == people })
	for _, user := range []id.User{1, people} {
		if left := look.raw.PTTL(t.Context(), "presence:{"+user.String()+"}").Val(); left <= 0 || left > presence.DefaultExpiry {
			t.Errorf("the key of %s lives for %v", user, left)
		}
	}
	p.Disconnected(anna)
	p.stop()
	if n := keys(); n != 0 {
		t.Errorf("%d keys have stayed", n)
	}
}

// Who is connected to two processes stays so when one of them is killed, past the time in which its entries expire.
func TestAProcessIsKilled(t *testing.T) {
	t.Parallel()
	const expiry = 600 * time.Millisecond
	server := redistest.New(t)
	killed, other := start(t, server, presence.Config{Expiry: expiry}), start(t, server, presence.Config{Expiry: expiry})
	look := observe(t, server)
	killed.Connected(anna)
	killed.Connected(ben)
	other.Connected(anna)
	look.awaits("both are connected", anna, ben)
	killed.kill()
	began := time.Now()
	for look.sees(anna, ben) {
		if time.Since(began) > patience {
			t.Fatal("the entries of a killed process do not expire")
		}
	}
	if took := time.Since(began); took > 10*expiry {
		t.Errorf("it took %v", took)
	}
	for end := time.Now().Add(2 * expiry); time.Now().Before(end); {
		if !look.sees(anna) {
			t.Fatal("who is connected to the other process is away, or the other one has come back")
		}
	}
	other.Disconnected(anna)
	look.awaits("nobody is connected")
	if n := look.raw.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys have stayed", n)
	}
}

// What Redis has lost is there again at the next renewal, without a word from anybody.
func TestRedisIsEmptied(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	p, look := start(t, server, presence.Config{Expiry: 2 * never, RenewEvery: 100 * time.Millisecond}), observe(t, server)
	p.Connected(anna)
	p.Connected(cleo)
	look.awaits("two are connected", anna, cleo)
	for range 3 {
		if err := look.raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := look.raw.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		look.awaits("they are again", anna, cleo)
	}
	if n := p.log.count("WARN"); n != 0 {
		t.Errorf("%d warnings", n)
	}
}

// Nobody waits for a Redis that is away, and all is noted when it is back, also who has left: nothing is due to be renewed
// here, and nothing expires.
func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct {
		begin, end func(*redistest.Server)
		replicas   string // that it demands meanwhile
	}{
		"killed":          {(*redistest.Server).Kill, (*redistest.Server).Start, "0"},
		"paused":          {(*redistest.Server).Pause, (*redistest.Server).Resume, "0"},
		"takes no writes": {func(*redistest.Server) {}, func(*redistest.Server) {}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.New(t)
			p, look := start(t, server, presence.Config{Expiry: 2 * never, RenewEvery: never}), observe(t, server)
			p.Connected(anna)
			p.Connected(ben)
			look.awaits("two are connected", anna, ben)
			demand := func(replicas string) {
				t.Helper()
				if err := look.raw.ConfigSet(t.Context(), "min-replicas-to-write", replicas).Err(); err != nil {
					t.Fatal(err)
				}
			}
			demand(outage.replicas)
			outage.begin(server)
			began := time.Now()
			p.Disconnected(anna)
			p.Connected(cleo)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("they have waited for %v", took)
			}
			eventually(t, "it is noticed", func() bool { return p.log.count("WARN") == 1 })
			outage.end(server)
			demand("0")
			look.awaits("what has changed is known", ben, cleo)
			eventually(t, "it is said", func() bool { return p.log.count("is noted again") == 1 })
			if n := p.log.count("WARN"); n != 1 {
				t.Errorf("%d warnings", n)
			}
		})
	}
}

func TestConfigNamesTheFieldAtFault(t *testing.T) {
	t.Parallel()
	store := redis.NewPresence(open(t, redistest.New(t)))
	if err := (presence.Config{Store: store}).Validate(); err != nil {
		t.Errorf("a valid configuration: %v", err)
	}
	for field, config := range map[string]presence.Config{
		"Store":      {},
		"Expiry":     {Store: store, Expiry: time.Microsecond},
		"RenewEvery": {Store: store, RenewEvery: presence.DefaultExpiry},
	} {
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
