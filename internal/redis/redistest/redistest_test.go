package redistest_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"tidemark/internal/redis/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKilledRedisStartsEmptyOnItsPort(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	url := server.URL()
	client := connect(t, url)
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}

	server.Kill()
	if err := client.Get(t.Context(), "key").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("a killed Redis answers: %v", err)
	}
	server.Start()
	if server.URL() != url {
		t.Errorf("it moved from %s to %s", url, server.URL())
	}
	if err := client.Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("got error %v, want %v", err, redis.Nil)
	}
}

func TestPausedRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	client := connect(t, server.URL())
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}

	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var timeout net.Error
	if err := client.Get(ctx, "key").Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got error %v, want a timeout", err)
	}
	server.Resume()
	if got, err := client.Get(t.Context(), "key").Result(); got != "value" || err != nil {
		t.Errorf("got %q, %v after it was resumed", got, err)
	}
	server.Pause() // and a paused one must not hold up the end of the test
}

func TestEachTestHasItsOwn(t *testing.T) {
	t.Parallel()
	one, other := connect(t, redistest.New(t).URL()), connect(t, redistest.New(t).URL())
	if err := one.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := other.Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("got error %v, want %v", err, redis.Nil)
	}
}

func connect(t *testing.T, url string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options.MaxRetries = -1
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}
