package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	anna id.User = iota + 1
	ben
	cleo
)

// domain is what Tidemark does, on one database.
type domain struct {
	t          testing.TB
	url        string
	store      *postgres.Store
	channels   *channel.Channels
	readStates *readstate.ReadStates
	deliveries *delivery.Deliveries
}

// newDomain has a database of its own.
func newDomain(t testing.TB) *domain {
	t.Helper()
	return openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t)})
}

func openDomain(t testing.TB, config postgres.Config) *domain {
	t.Helper()
	store, err := postgres.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	readStates := readstate.New(store, nil)
	return &domain{
		t: t, url: config.URL, store: store,
		channels:   channel.NewChannels(store, readStates, nil),
		readStates: readStates,
		deliveries: delivery.New(store, readStates, delivery.DefaultMaxGap),
	}
}

// group makes a group of its creator and others.
func (d *domain) group(creator id.User, others ...id.User) id.Channel {
	d.t.Helper()
	made, err := d.channels.Create(d.t.Context(), person.Viewer{ID: creator}, channel.New{Kind: channel.Group, Members: others})
	if err != nil {
		d.t.Fatal(err)
	}
	return made.ID
}

func (d *domain) send(sender id.User, to id.Channel) channel.Sent {
	d.t.Helper()
	sent, err := d.trySend(d.t.Context(), sender, to, "")
	if err != nil {
		d.t.Fatal(err)
	}
	return sent
}

func (d *domain) trySend(ctx context.Context, sender id.User, to id.Channel, clientID string) (channel.Sent, error) {
	draft := channel.Draft{ChannelID: to, Body: "hello", ClientMessageID: clientID}
	return d.channels.Send(ctx, person.Viewer{ID: sender}, draft, readstate.DefaultCap)
}

func (d *domain) delete(sender id.User, from id.Channel, seq id.Seq) {
	d.t.Helper()
	if _, err := d.channels.Delete(d.t.Context(), person.Viewer{ID: sender}, from, seq); err != nil {
		d.t.Fatal(err)
	}
}

func (d *domain) read(who id.User, in id.Channel, upTo id.Seq) readstate.Result {
	d.t.Helper()
	result, err := d.readStates.MarkRead(d.t.Context(), who, "", readstate.Cursor{ChannelID: in, UpToSeq: upTo}, readstate.DefaultCap)
	if err != nil {
		d.t.Fatal(err)
	}
	return result
}

func (d *domain) badge(who id.User, of id.Channel) readstate.Badge {
	d.t.Helper()
	badge, err := d.readStates.Badge(d.t.Context(), who, of, readstate.MaxCap)
	if err != nil {
		d.t.Fatal(err)
	}
	return badge
}

// sync asks for all that a device lacks, in one page.
func (d *domain) sync(who id.User, device id.Device, in id.Channel, held delivery.Held) delivery.Sync {
	d.t.Helper()
	answer, err := d.deliveries.Sync(d.t.Context(), who, delivery.Request{
		ChannelID: in, DeviceID: device, Held: held, Limit: 200, Cap: readstate.DefaultCap,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return answer
}

func (d *domain) confirm(who id.User, device id.Device, in id.Channel, seq id.Seq) {
	d.t.Helper()
	cursors := []delivery.Confirmed{{ChannelID: in, Seq: seq}}
	if _, err := d.deliveries.Confirm(d.t.Context(), who, device, nil, cursors); err != nil {
		d.t.Fatal(err)
	}
}

// conn is a connection past the store, for what only Postgres can tell.
func (d *domain) conn() *pgx.Conn {
	d.t.Helper()
	return connect(d.t, d.url)
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) }) // its database may be gone
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// value returns what a query of one row and column tells.
func value[V any](t testing.TB, conn *pgx.Conn, sql string, args ...any) V {
	t.Helper()
	var v V
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// patience bounds every wait for something that is sure to come.
const patience = 30 * time.Second

// await returns when a condition holds that Postgres is asked about, over and over.
func await(t testing.TB, conn *pgx.Conn, condition string) {
	t.Helper()
	for began := time.Now(); !value[bool](t, conn, "SELECT "+condition); {
		if time.Since(began) > patience {
			t.Fatalf("not so after %v: %s", patience, condition)
		}
	}
}

const (
	// someoneWaits holds once a statement on this database waits for a lock.
	someoneWaits = `EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock')`
	// allIsQuiet holds once no statement of others runs on this database.
	allIsQuiet = `NOT EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid())`
)

func wantCode(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
