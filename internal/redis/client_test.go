package redis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	client, err := redis.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// open returns rate limits on a Redis of the test's own.
func open(t *testing.T) (*redis.RateLimits, *redistest.Server) {
	t.Helper()
	server := redistest.New(t)
	return redis.NewRateLimits(openClient(t, server.URL())), server
}

// rawClient looks into a server past the package under test.
func rawClient(t *testing.T, server *redistest.Server) *goredis.Client {
	t.Helper()
	opts, err := goredis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	raw := goredis.NewClient(opts)
	t.Cleanup(func() { _ = raw.Close() })
	return raw
}

func TestOpenDoesNotTellThePassword(t *testing.T) {
	for _, url := range []string{
		"redis://:hunter2@local host:6379", "http://:hunter2@localhost", "redis://:hunter2@localhost/not-a-number",
		"redis://:hunter2@localhost?no_such=1", "redis://:hunter2@localhost:port", "://hunter2", "",
	} {
		if _, err := redis.Open(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v", url, err)
		}
	}
}

func TestOpenTakesOptionsFromTheURL(t *testing.T) {
	client := openClient(t, "rediss://ada:hunter2@localhost:7000/3?pool_size=50&read_timeout=2s&max_retries=-1")
	err := client.Instrument(func(rdb goredis.UniversalClient) error {
		got := rdb.(*goredis.Client).Options()
		if got.PoolSize != 50 || got.ReadTimeout != 2*time.Second || got.MaxRetries != 0 || got.DB != 3 || got.TLSConfig == nil {
			t.Errorf("got %+v", got)
		}
		if got.WriteTimeout != 500*time.Millisecond || !got.ContextTimeoutEnabled {
			t.Errorf("got a write timeout of %v, contexts heeded: %v", got.WriteTimeout, got.ContextTimeoutEnabled)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	client := openClient(t, server.URL())
	if err := client.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}

	server.Pause()
	for _, c := range []struct{ patience, most time.Duration }{
		{100 * time.Millisecond, 400 * time.Millisecond},
		{time.Hour, 2 * time.Second},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), c.patience)
		start := time.Now()
		err := client.Ping(ctx)
		if took := time.Since(start); err == nil || took > c.most {
			t.Errorf("a Redis that hangs, with %v to spare: got %v after %v", c.patience, err, took)
		}
		cancel()
	}
	server.Resume()
	if err := client.Ping(t.Context()); err != nil {
		t.Errorf("resumed: %v", err)
	}

	server.Kill()
	start := time.Now()
	err := client.Ping(t.Context())
	if took := time.Since(start); err == nil || took > 2*time.Second {
		t.Errorf("a Redis that is gone: got %v after %v", err, took)
	}
	server.Start()
	if err := client.Ping(t.Context()); err != nil {
		t.Errorf("started again: %v", err)
	}
}

func TestOpenWhileRedisIsAway(t *testing.T) {
	client := openClient(t, "redis://127.0.0.1:1")
	var refused *net.OpError
	if err := client.Ping(t.Context()); !errors.As(err, &refused) {
		t.Errorf("got %v, want the refused connection", err)
	}
}

// hook counts the calls that pass it.
type hook struct{ calls *int }

func (hook) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h hook) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		*h.calls++
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		*h.calls++
		return next(ctx, cmds)
	}
}

// Whatever is made with an instrumented client is instrumented, be it tried again or not.
func TestInstrumentReachesAll(t *testing.T) {
	t.Parallel()
	client := openClient(t, redistest.New(t).URL())
	var calls int
	if err := client.Instrument(func(rdb goredis.UniversalClient) error {
		rdb.AddHook(hook{&calls})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"tried again": func() error { return client.Ping(t.Context()) },
		"tried once": func() error {
			_, _, err := redis.NewNewlyUnread(client).Read(t.Context(), "a store", 1, 10)
			return err
		},
	} {
		before := calls
		if err := call(); err != nil || calls == before {
			t.Errorf("%s: %v, and %d calls pass the hook", name, err, calls-before)
		}
	}
}
