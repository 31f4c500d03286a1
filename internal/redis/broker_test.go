package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"tidemark/internal/live"
	"tidemark/internal/live/brokertest"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

const (
	probeEvery  = 50 * time.Millisecond
	probeWithin = time.Second
	// slack is what a busy machine may take on top.
	slack = 5 * time.Second
)

// newBroker returns a broker that soon notices that its link is dead.
func newBroker(client *redis.Client) *redis.Broker {
	return redis.NewBroker(client, redis.BrokerConfig{
		ProbeEvery: probeEvery, ProbeWithin: probeWithin, Logger: slog.New(slog.DiscardHandler),
	})
}

// newPatientBroker returns a broker that waits for a probe so long that whatever is prompt owes it nothing.
func newPatientBroker(client *redis.Client) *redis.Broker {
	return redis.NewBroker(client, redis.BrokerConfig{
		ProbeEvery: probeEvery, ProbeWithin: 20 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
}

func TestBroker(t *testing.T) {
	t.Parallel()
	t.Run("Redis", func(t *testing.T) {
		t.Parallel()
		brokertest.Run(t, func(t *testing.T) brokertest.Env {
			t.Helper()
			server := redistest.New(t)
			return brokertest.Env{
				Broker: func() live.Broker { return newPatientBroker(openClient(t, server.URL())) },
				Kill:   server.Kill,
				Start:  server.Start,
			}
		})
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		brokertest.Run(t, func(t *testing.T) brokertest.Env {
			t.Helper()
			server := miniredis.RunT(t)
			url := "redis://" + server.Addr() + "/0"
			return brokertest.Env{
				Broker: func() live.Broker { return newPatientBroker(openClient(t, url)) },
				Kill:   server.Close,
				Start: func() {
					if err := server.Restart(); err != nil {
						t.Error(err)
					}
				},
			}
		})
	})
}

// startBrokers returns two processes on one Redis, of which the first is subscribed to channel:{1}.
func startBrokers(t *testing.T, server *redistest.Server) (p, other *brokertest.Process) {
	t.Helper()
	p = brokertest.StartUp(t, newBroker(openClient(t, server.URL())))
	other = brokertest.StartUp(t, newBroker(openClient(t, server.URL())))
	p.MustSubscribe("channel:{1}")
	return p, other
}

// mustNotice waits for the broker to notice that its link is dead.
func mustNotice(t *testing.T, p *brokertest.Process, since time.Time) {
	t.Helper()
	p.AwaitDown()
	if took := time.Since(since); took > probeWithin+slack {
		t.Errorf("noticed after %v, want %v", took, probeWithin)
	}
}

func TestBrokerNoticesPausedRedis(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	p, other := startBrokers(t, server)

	server.Pause()
	paused := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.Subscribe(ctx, "channel:{2}"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Subscribe: got %v, want %v", err, context.DeadlineExceeded)
	}
	if err := p.Subscribe(t.Context(), "channel:{3}"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Subscribe: got %v, want an error that the link is down", err)
	}
	mustNotice(t, p, paused)
	other.AwaitDown()
	server.Resume()
	p.AwaitResumed(2)
	other.AwaitResumed(2)
	for _, topic := range []live.Topic{"channel:{1}", "channel:{2}", "channel:{3}"} {
		other.MustReach(topic, "resumed", p)
	}

	// Run ends promptly also while Redis hangs, at any stage.
	up := brokertest.StartUp(t, newPatientBroker(openClient(t, server.URL())))
	server.Pause()
	up.Stop()
	brokertest.Start(t, newPatientBroker(openClient(t, server.URL()))).StopAfter(50 * time.Millisecond)
	other.AwaitDown()
	other.Stop()
}

func TestPublishDoesNotWaitForPausedRedis(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	p, _ := startBrokers(t, server)
	server.Pause()
	for p.Up() {
		start := time.Now()
		err := p.Publish(t.Context(), live.Publication{Topic: "channel:{1}"})
		if took := time.Since(start); err == nil || took > 2*time.Second {
			t.Errorf("got %v after %v, want an error in half a second", err, took)
		}
	}
	server.Resume()
}

// newProxy returns a proxy before a server.
func newProxy(t *testing.T, server *redistest.Server) *toxiproxy.Proxy {
	t.Helper()
	opts, err := goredis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		"redis", "127.0.0.1:0", opts.Addr)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	return proxy
}

// TestBrokerNoticesBlackHole cuts a link that looks whole from both ends.
func TestBrokerNoticesBlackHole(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	proxy := newProxy(t, server)
	p := brokertest.StartUp(t, newBroker(openClient(t, "redis://"+proxy.Listen)))
	other := brokertest.StartUp(t, newBroker(openClient(t, server.URL())))
	p.MustSubscribe("channel:{1}")
	other.MustReach("channel:{1}", "before", p)

	for _, stream := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"name": %q, "type": "timeout", "stream": %q, "attributes": {"timeout": 0}}`, stream, stream)
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatal(err)
		}
	}
	mustNotice(t, p, time.Now())
	if p.ResumedTimes() != 1 || other.ResumedTimes() != 1 {
		t.Errorf("resumed %d and %d times, want 1 and 1", p.ResumedTimes(), other.ResumedTimes())
	}
	proxy.Toxics.ResetToxics(t.Context())
	p.AwaitResumed(2)
	other.MustReach("channel:{1}", "after", p)
}

// TestBrokerNoticesDetachedRedis leaves the link with a Redis that works, while what the process publishes goes to
// another one, as after a failover that only some connections have seen. The link is not even silent.
func TestBrokerNoticesDetachedRedis(t *testing.T) {
	t.Parallel()
	old, current := redistest.New(t), redistest.New(t)
	var failedOver atomic.Bool
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		opts, err := goredis.ParseURL(old.URL())
		if failedOver.Load() {
			opts, err = goredis.ParseURL(current.URL())
		}
		if err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, network, opts.Addr)
	}
	client := redis.NewClient(&goredis.Options{Dialer: dial})
	t.Cleanup(func() { _ = client.Close() })
	p := brokertest.StartUp(t, newBroker(client))
	p.MustSubscribe("channel:{1}")

	failedOver.Store(true)
	raw := rawClient(t, old)
	if err := raw.ClientKillByFilter(t.Context(), "TYPE", "normal").Err(); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	for p.Up() && time.Since(since) < probeWithin+slack {
		if err := raw.Publish(t.Context(), "channel:{1}", "from those who are detached too").Err(); err != nil {
			t.Fatal(err)
		}
	}
	mustNotice(t, p, since)
	p.AwaitResumed(2)
	other := brokertest.StartUp(t, newBroker(openClient(t, current.URL())))
	other.MustReach("channel:{1}", "after", p)
}

// TestNoHoleAfterResumed cuts all links again and again while another process publishes. What is published after
// Resumed has to come, as long as the link holds.
func TestNoHoleAfterResumed(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	client := openClient(t, server.URL())
	p := brokertest.StartUp(t, newBroker(client))
	raw := rawClient(t, server)
	topics := make([]live.Topic, 3000)
	for i := range topics {
		topics[i] = live.Topic(fmt.Sprintf("channel:{%d}", i))
	}
	p.MustSubscribe(topics...)
	for round := 1; round <= 5; round++ {
		if err := raw.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		p.AwaitResumed(round + 1)
		var came []<-chan struct{}
		pipe := raw.Pipeline()
		for _, topic := range topics {
			payload := fmt.Sprint(round)
			came = append(came, p.Expect(topic, payload))
			pipe.Publish(t.Context(), string(topic), payload)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		deadline := time.After(30 * time.Second)
		for i, came := range came {
			select {
			case <-came:
			case <-deadline:
				t.Fatalf("round %d: nothing came on %s", round, topics[i])
			}
		}
		if got := p.ResumedTimes(); got != round+1 {
			t.Errorf("resumed %d times, want %d", got, round+1)
		}
	}
}

// TestBrokerLogsOutageOnce counts what is written while Redis is away for many tries.
func TestBrokerLogsOutageOnce(t *testing.T) {
	t.Parallel()
	server := redistest.New(t)
	opts, err := goredis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	tries := make(chan struct{})
	opts.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		select {
		case tries <- struct{}{}:
		default:
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	var log lines
	p := brokertest.StartUp(t, redis.NewBroker(client, redis.BrokerConfig{
		ProbeEvery: probeEvery, ProbeWithin: probeWithin, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}))
	if got := log.all(); len(got) != 0 {
		t.Errorf("a first link that comes up was logged: %q", got)
	}
	server.Kill()
	p.AwaitDown()
	for range 4 {
		<-tries
	}
	server.Start()
	p.AwaitResumed(2)
	p.Stop()
	got := log.all()
	if len(got) != 2 || !strings.Contains(got[0], "is down") || !strings.Contains(got[1], "is back") {
		t.Errorf("got %q, want a line for each event", got)
	}
}

// lines keeps what is written to it.
type lines struct {
	mu  sync.Mutex
	got []string
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, string(line))
	return len(line), nil
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}
