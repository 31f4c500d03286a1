package redis_test

import (
	"slices"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

// A person's key lives as long as the last of its entries, whatever becomes of the others.
func TestPresenceLivesAsLongAsItsLastEntry(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	kept, raw := redis.NewPresence(openClient(t, server.URL())), rawClient(t, server)
	keep := func(process string, expiry time.Duration) {
		t.Helper()
		if err := kept.Keep(t.Context(), process, []id.User{7, 8}, expiry); err != nil {
			t.Fatal(err)
		}
	}
	leave := func(process string) {
		t.Helper()
		if err := kept.Leave(t.Context(), process, []id.User{7}); err != nil {
			t.Fatal(err)
		}
	}
	lives := func(atMost time.Duration, entries ...string) {
		t.Helper()
		left := raw.PTTL(t.Context(), "presence:{7}").Val()
		if left <= atMost-10*time.Second || left > atMost {
			t.Errorf("the key lives for %v, want %v", left, atMost)
		}
		if got := raw.ZRange(t.Context(), "presence:{7}", 0, -1).Val(); !slices.Equal(got, entries) {
			t.Errorf("it has %v, want %v", got, entries)
		}
	}
	keep("a", time.Hour)
	lives(time.Hour, "a")
	keep("b", time.Minute)
	lives(time.Hour, "b", "a")
	keep("b", time.Minute) // again changes nothing
	lives(time.Hour, "b", "a")
	leave("a")
	lives(time.Minute, "b")
	leave("nobody")
	lives(time.Minute, "b")

	keep("c", time.Millisecond)
	for began := time.Now(); raw.ZScore(t.Context(), "presence:{7}", "c").Err() == nil; leave("nobody") {
		if time.Since(began) > 10*time.Second {
			t.Fatal("what has expired is not taken away")
		}
	}
	lives(time.Minute, "b")
	leave("b")
	if online, err := kept.Online(t.Context(), []id.User{7, 8, 9}); err != nil || !slices.Equal(online, []id.User{8}) {
		t.Errorf("connected are %v, %v", online, err)
	}
	if n := raw.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys, want 1", n)
	}
}

func TestPresenceOfNobody(t *testing.T) {
	t.Parallel()
	kept := redis.NewPresence(openClient(t, redistest.New(t).URL()))
	if online, err := kept.Online(t.Context(), nil); err != nil || len(online) != 0 {
		t.Errorf("%v, %v", online, err)
	}
	if err := kept.Keep(t.Context(), "a", nil, time.Minute); err != nil {
		t.Error(err)
	}
}
