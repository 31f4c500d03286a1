// Package copies_test holds newly unread's copies in Redis against the truth in Postgres: with real servers of both, through
// everything that may happen to either, and to whoever writes and reads them.
package copies_test

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	anna id.User = iota + 1
	ben
	cleo
	dina

	// patience bounds every wait, and is much longer than a lease.
	patience = 30 * time.Second
)

// lab is a store, a Redis, and what is done on them.
type lab struct {
	t          testing.TB
	store      *postgres.Store
	sql        *pgx.Conn
	redis      *redistest.Server
	raw        *goredis.Client
	channels   *channel.Channels
	readStates *readstate.ReadStates
}

func newLab(t testing.TB) *lab {
	t.Helper()
	database := pgtest.NewDatabase(t)
	store, err := postgres.Open(t.Context(), postgres.Config{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	sql, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sql.Close(context.WithoutCancel(t.Context())) })
	server := redistest.New(t)
	readStates := readstate.New(store, nil)
	return &lab{
		t: t, store: store, sql: sql, redis: server, raw: connect(t, server.URL()),
		channels: channel.NewChannels(store, readStates, nil), readStates: readStates,
	}
}

// connect opens a connection past everything that is tested.
func connect(t testing.TB, at string) *goredis.Client {
	t.Helper()
	options, err := goredis.ParseURL(at)
	if err != nil {
		t.Fatal(err)
	}
	client := goredis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// client opens what Tidemark talks to a Redis with.
func client(t testing.TB, at string) *redis.Client {
	t.Helper()
	c, err := redis.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (l *lab) copies() *redis.NewlyUnread { return redis.NewNewlyUnread(client(l.t, l.redis.URL())) }

// icons reads through a projection.
func (l *lab) icons(copies newlyunread.Projection) *newlyunread.NewlyUnread {
	return newlyunread.New(newlyunread.Config{Store: l.store, Projection: copies, Logger: slog.New(slog.DiscardHandler)})
}

// worker is one that works.
type worker struct {
	*newlyunread.Worker
	stop func()
}

// work starts a worker. Where the configuration names no queue it is the store's, and no projection a new one.
func (l *lab) work(config newlyunread.WorkerConfig) worker {
	l.t.Helper()
	if config.Queue == nil {
		config.Queue = l.store
	}
	if config.Projection == nil {
		config.Projection = l.copies()
	}
	config.Logger = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.t.Context()))
	ended := make(chan error, 1)
	w := worker{Worker: newlyunread.NewWorker(config)}
	go func() { ended <- w.Run(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			l.t.Error(err)
		}
	}
	l.t.Cleanup(w.stop)
	return w
}

// group makes a group.
func (l *lab) group(members ...id.User) id.Channel {
	l.t.Helper()
	made, err := l.channels.Create(l.t.Context(), person.Viewer{Role: person.RoleService}, channel.New{Kind: channel.Group, Members: members})
	if err != nil {
		l.t.Fatal(err)
	}
	return made.ID
}

func (l *lab) send(sender id.User, to id.Channel) {
	l.t.Helper()
	if _, err := l.channels.Send(l.t.Context(), person.Viewer{ID: sender}, channel.Draft{ChannelID: to, Body: "hello"}, readstate.DefaultCap); err != nil {
		l.t.Fatal(err)
	}
}

// settle waits until all that was sent has arrived and is in the copies, as far as those are trusted.
func (l *lab) settle() {
	l.t.Helper()
	eventually(l.t, "all has arrived", func() bool {
		var done bool
		err := l.sql.QueryRow(l.t.Context(), "SELECT NOT EXISTS (SELECT FROM outbox) AND NOT EXISTS (SELECT FROM arrival_event)").Scan(&done)
		if err != nil {
			l.t.Fatal(err)
		}
		return done && l.copied()
	})
}

func (l *lab) copied() bool {
	positions, err := l.store.Positions(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, m := range positions {
		mark := l.raw.Get(l.t.Context(), markKey(m.Partition)).Val()
		if mark == "" { // nobody trusts copies
			continue
		}
		parts := strings.Split(mark, ":")
		generation, _ := strconv.ParseInt(parts[1], 10, 64)
		position, _ := strconv.ParseInt(parts[2], 10, 64)
		if generation == m.Generation.Number && position < int64(m.Position) {
			return false
		}
	}
	return true
}

// warm waits until copies can be made, and has one of a person made that shows these.
func (l *lab) warm(icons *newlyunread.NewlyUnread, who id.User, senders ...id.User) newlyunread.Shown {
	l.t.Helper()
	eventually(l.t, "there is a copy", func() bool {
		before := icons.Stats().Warm
		l.shows(icons, who, senders...)
		return icons.Stats().Warm > before
	})
	return l.shows(icons, who, senders...)
}

// shows reads an icon, which must show these, newest first.
func (l *lab) shows(icons *newlyunread.NewlyUnread, who id.User, senders ...id.User) newlyunread.Shown {
	l.t.Helper()
	shown, err := icons.Get(l.t.Context(), who, 10)
	if err != nil {
		l.t.Fatal(err)
	}
	if got := ids(shown); !slices.Equal(got, senders) {
		l.t.Fatalf("shown %v, want %v", got, senders)
	}
	return shown
}

func ids(shown newlyunread.Shown) (senders []id.User) {
	for _, s := range shown.Senders {
		senders = append(senders, s.UserID)
	}
	return senders
}

func (l *lab) acknowledge(icons *newlyunread.NewlyUnread, who id.User, asOf newlyunread.Position) newlyunread.Shown {
	l.t.Helper()
	shown, err := icons.Acknowledge(l.t.Context(), who, &asOf, 10)
	if err != nil {
		l.t.Fatal(err)
	}
	return shown
}

func (l *lab) exec(sql string, args ...any) {
	l.t.Helper()
	if _, err := l.sql.Exec(l.t.Context(), sql, args...); err != nil {
		l.t.Fatal(err)
	}
}

func copyKey(user id.User) string { return "newly_unread:{" + user.String() + "}" }

func markKey(p newlyunread.Partition) string {
	return "newly_unread_mark:{" + strconv.Itoa(int(p)) + "}"
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		if now := <-look.C; now.After(end) {
			t.Fatalf("after %v it is not so that %s", patience, what)
		}
	}
}

// replicate starts a replica of the lab's Redis.
func (l *lab) replicate() *redistest.Server {
	l.t.Helper()
	replica := redistest.New(l.t)
	l.follow(replica, l.redis)
	return replica
}

// follow has a server replicate another, and waits until it does.
func (l *lab) follow(replica, primary *redistest.Server) {
	l.t.Helper()
	at, err := url.Parse(primary.URL())
	if err != nil {
		l.t.Fatal(err)
	}
	raw := connect(l.t, replica.URL())
	if err := raw.Do(l.t.Context(), "REPLICAOF", at.Hostname(), at.Port()).Err(); err != nil {
		l.t.Fatal(err)
	}
	eventually(l.t, "the replica follows", func() bool {
		return strings.Contains(raw.Info(l.t.Context(), "replication").Val(), "master_link_status:up")
	})
}

// promote ends a replica's following.
func (l *lab) promote(replica *redistest.Server) {
	l.t.Helper()
	if err := connect(l.t, replica.URL()).Do(l.t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		l.t.Fatal(err)
	}
}
