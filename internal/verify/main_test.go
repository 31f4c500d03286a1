package verify_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/verify"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	anna id.User = iota + 1
	ben
	cleo
)

// newStore has a group of three in it, with a message and one that was deleted.
func newStore(t *testing.T) (store *postgres.Store, conn *pgx.Conn) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	store, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	if conn, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	channels := channel.NewChannels(store, readstate.New(store, nil), nil)
	viewer := person.Viewer{ID: anna}
	group, err := channels.Create(t.Context(), viewer, channel.New{Kind: channel.Group, Members: []id.User{ben, cleo}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := channels.Send(t.Context(), viewer, channel.Draft{ChannelID: group.ID, Body: "hello"}, readstate.DefaultCap); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := channels.Delete(t.Context(), viewer, group.ID, 2); err != nil {
		t.Fatal(err)
	}
	return store, conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// patience bounds every wait for something that is sure to come.
const patience = 30 * time.Second

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); {
		if time.Since(began) > patience {
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

// projections are counts of who is newly unread, kept beside the truth in memory.
type projections struct {
	mu          sync.Mutex
	kept, truth map[id.User]int
	dropped     [][]id.User
	err         error
}

var _ verify.Projections = (*projections)(nil)

func (p *projections) DriftOf(_ context.Context, users []id.User) (drift []verify.ProjectionDrift, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, user := range users {
		if kept, ok := p.kept[user]; ok && kept != p.truth[user] {
			drift = append(drift, verify.ProjectionDrift{UserID: user, Projected: people(kept), Counted: people(p.truth[user])})
		}
	}
	return drift, p.err
}

func (p *projections) Drop(_ context.Context, users []id.User) (dropped int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropped = append(p.dropped, slices.Clone(users))
	for _, user := range users {
		if _, ok := p.kept[user]; ok {
			delete(p.kept, user)
			dropped++
		}
	}
	return dropped, p.err
}

func people(n int) string { return string(rune('0'+n)) + " people" }

var errAway = errors.New("away")
