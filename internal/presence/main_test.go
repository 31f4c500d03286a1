package presence_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"tidemark/internal/id"
	"tidemark/internal/presence"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	anna id.User = iota + 1
	ben
	cleo
)

// patience bounds every wait for something that is sure to come.
const patience = 30 * time.Second

// never is the time between renewals where nothing may come of them.
const never = time.Hour

// process is one that people are connected to.
type process struct {
	*presence.Tracker
	log    *journal
	client *redis.Client
	stop   func()
}

// start runs a tracker until it is stopped, or the test ends.
func start(t *testing.T, server *redistest.Server, config presence.Config) *process {
	t.Helper()
	p := &process{log: &journal{}, client: open(t, server)}
	config.Store, config.Logger = redis.NewPresence(p.client), slog.New(slog.NewTextHandler(p.log, nil))
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	p.Tracker = presence.NewTracker(config)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(p.stop)
	return p
}

// kill has the process say nothing any more, as one that was killed.
func (p *process) kill() {
	_ = p.client.Close()
	p.stop()
}

func open(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	client, err := redis.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// observer looks at who is connected.
type observer struct {
	t     *testing.T
	store *redis.Presence
	raw   *goredis.Client
}

func observe(t *testing.T, server *redistest.Server) observer {
	t.Helper()
	options, err := goredis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	raw := goredis.NewClient(options)
	t.Cleanup(func() { _ = raw.Close() })
	return observer{t: t, store: redis.NewPresence(open(t, server)), raw: raw}
}

// sees reports whether just these of the first users are connected.
func (o observer) sees(people ...id.User) bool {
	online, err := o.store.Online(o.t.Context(), []id.User{anna, ben, cleo})
	return err == nil && slices.Equal(online, people)
}

// awaits waits until just these are.
func (o observer) awaits(what string, people ...id.User) {
	o.t.Helper()
	eventually(o.t, what, func() bool { return o.sees(people...) })
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !holds(); <-tick.C {
		if time.Since(began) > patience {
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

// journal is a log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) count(part string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), part)
}
