package presence

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/wait"
)

const (
	// DefaultExpiry is how long somebody whose process was killed seems connected.
	DefaultExpiry = 30 * time.Second
	// chunk bounds the people that one call is about, and so the time that it takes.
	chunk = 500
	// writeTimeout bounds a call of a Tracker.
	writeTimeout = time.Second
	// leaveTimeout bounds the end. What it does not get to expires.
	leaveTimeout = 2 * time.Second
	// mostPause is how long a store that failed is left alone.
	mostPause = time.Second
)

// Store keeps which process serves whom. Each call is one round trip about few people; its errors leave open what was
// done of it, and a call that is made again changes nothing more.
type Store interface {
	// Keep notes that a process serves these people, until so long from now by the store's own clock.
	Keep(ctx context.Context, process string, users []id.User, expiry time.Duration) error
	// Leave takes away that it does.
	Leave(ctx context.Context, process string, users []id.User) error
	// Online returns those of the users whom some process serves.
	Online(ctx context.Context, users []id.User) ([]id.User, error)
}

// Config says how a process's connections are noted.
type Config struct {
	// Store must be set.
	Store Store
	// Expiry is how long an entry lasts that is not renewed. Zero: DefaultExpiry.
	Expiry time.Duration
	// RenewEvery is how often all are noted again. Zero: a third of Expiry, so that two may fail in a row.
	RenewEvery time.Duration
	// Logger: slog.Default.
	Logger *slog.Logger
}

// Validate names the field that is not what it may be.
func (c Config) Validate() error {
	full := c.withDefaults()
	switch {
	case c.Store == nil:
		return errors.New("presence: Store must be set")
	case full.Expiry < time.Millisecond:
		return errors.New("presence: Expiry must be at least a millisecond")
	case full.RenewEvery <= 0 || full.RenewEvery >= full.Expiry:
		return errors.New("presence: RenewEvery must be more than 0 and less than Expiry")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Expiry = cmp.Or(c.Expiry, DefaultExpiry)
	c.RenewEvery = cmp.Or(c.RenewEvery, c.Expiry/3)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Tracker notes the connections of this process. It is safe for concurrent use.
type Tracker struct {
	config Config
	name   string // of this process, among all
	woken  chan struct{}

	mu          sync.Mutex
	connections map[id.User]int
	changed     map[id.User]struct{} // who came or left since Run looked last

	awaySince time.Time // of the store; zero while it works. Run's alone
}

// NewTracker returns a tracker that config, which must be valid, describes. It writes nothing before Run.
func NewTracker(config Config) *Tracker {
	return &Tracker{
		config: config.withDefaults(), name: rand.Text(), woken: make(chan struct{}, 1),
		connections: make(map[id.User]int), changed: make(map[id.User]struct{}),
	}
}

// Connected counts one connection more of a person. It does not wait for the store.
func (t *Tracker) Connected(user id.User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.connections[user]++; t.connections[user] == 1 {
		t.changedLocked(user)
	}
}

// Disconnected counts one connection less. It does not wait for the store.
func (t *Tracker) Disconnected(user id.User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.connections[user]--; t.connections[user] <= 0 {
		delete(t.connections, user)
		t.changedLocked(user)
	}
}

func (t *Tracker) changedLocked(user id.User) {
	t.changed[user] = struct{}{}
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// People is how many people this process serves.
func (t *Tracker) People() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.connections)
}

// Run notes who is connected until ctx ends, and takes away then what it has noted.
func (t *Tracker) Run(ctx context.Context) error {
	defer t.leave(ctx)
	renew := time.NewTicker(t.config.RenewEvery)
	defer renew.Stop()
	var due []id.User // to be noted again
	for {
		if len(due) == 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-t.woken:
			case <-renew.C:
				due = t.everybody()
			}
		}
		// Who came or left does not wait until everybody is noted again.
		next := due[:min(chunk, len(due))]
		due = due[len(next):]
		came, gone := t.news(next)
		if err := errors.Join(t.keep(ctx, came), t.takeAway(ctx, gone)); err != nil {
			if ctx.Err() != nil {
				t.remember(gone)
				return nil
			}
			t.failed(err, gone)
			wait.For(ctx, min(mostPause, t.config.RenewEvery))
			due = t.everybody() // what it holds by now is not known
			continue
		}
		t.succeeded()
	}
}

// news returns those of the people due, and of those who came or left, who are connected now and who are not.
func (t *Tracker) news(due []id.User) (here, gone []id.User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, user := range due {
		t.changed[user] = struct{}{}
	}
	for user := range t.changed {
		if t.connections[user] > 0 {
			here = append(here, user)
		} else {
			gone = append(gone, user)
		}
	}
	clear(t.changed)
	return here, gone
}

// remember has people looked at once more who may not have been taken away.
func (t *Tracker) remember(gone []id.User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, user := range gone {
		t.changedLocked(user)
	}
}

func (t *Tracker) everybody() []id.User {
	t.mu.Lock()
	defer t.mu.Unlock()
	users := make([]id.User, 0, len(t.connections))
	for user := range t.connections {
		users = append(users, user)
	}
	return users
}

func (t *Tracker) keep(ctx context.Context, users []id.User) error {
	return inChunks(ctx, users, func(ctx context.Context, users []id.User) error {
		return t.config.Store.Keep(ctx, t.name, users, t.config.Expiry)
	})
}

func (t *Tracker) takeAway(ctx context.Context, users []id.User) error {
	return inChunks(ctx, users, func(ctx context.Context, users []id.User) error {
		return t.config.Store.Leave(ctx, t.name, users)
	})
}

// inChunks stops at the first error.
func inChunks(ctx context.Context, users []id.User, write func(context.Context, []id.User) error) error {
	for users := range slices.Chunk(users, chunk) {
		writing, cancel := context.WithTimeout(ctx, writeTimeout)
		err := write(writing, users)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// leave takes away all that may be noted.
func (t *Tracker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	here, gone := t.news(t.everybody())
	if err := t.takeAway(ctx, slices.Concat(here, gone)); err != nil {
		t.config.Logger.Warn("people seem connected until their presence expires", "within", t.config.Expiry.String(), "error", err)
	}
}

// failed says so once for each time that the store is away. Those who have left are tried again for as long as what was
// noted of them may last.
func (t *Tracker) failed(err error, gone []id.User) {
	if t.awaySince.IsZero() {
		t.awaySince = time.Now()
		t.config.Logger.Warn("who is connected cannot be noted", "error", fmt.Errorf("presence: %w", err))
	}
	if time.Since(t.awaySince) <= t.config.Expiry {
		t.remember(gone)
	}
}

func (t *Tracker) succeeded() {
	if !t.awaySince.IsZero() {
		t.awaySince = time.Time{}
		t.config.Logger.Info("who is connected is noted again")
	}
}
