package postgres_test

import (
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
)

func TestConnectionsAreSetUp(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	for _, test := range []struct {
		name        string
		config      postgres.Config
		settings    map[string]string
		connections int32
	}{
		{
			"as they come",
			postgres.Config{URL: at},
			map[string]string{"application_name": "tidemark", "statement_timeout": "5000", "lock_timeout": "3000"},
			16,
		},
		{
			"as the program says",
			postgres.Config{URL: at, StatementTimeout: time.Second, LockTimeout: 20 * time.Millisecond, MaxConnections: 3},
			map[string]string{"statement_timeout": "1000", "lock_timeout": "20"},
			3,
		},
		{
			"as the URL says",
			postgres.Config{URL: at + "&statement_timeout=7000&application_name=mine&pool_max_conns=2", LockTimeout: time.Second},
			map[string]string{"application_name": "mine", "statement_timeout": "7000", "lock_timeout": "1000"},
			2,
		},
	} {
		var seen recorder
		test.config.Tracer = &seen
		d := openDomain(t, test.config)
		d.list(anna)
		for name, want := range test.settings {
			if got := seen.config.RuntimeParams[name]; got != want {
				t.Errorf("%s: %s is %q, want %q", test.name, name, got, want)
			}
		}
		if got := d.store.Stat().MaxConns(); got != test.connections {
			t.Errorf("%s: %d connections, want %d", test.name, got, test.connections)
		}
	}
}

func TestAURLThatIsNone(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"postgres://[", "postgres://localhost/?pool_max_conns=many"} {
		if store, err := postgres.Open(t.Context(), postgres.Config{URL: at}); err == nil {
			store.Close()
			t.Errorf("%s is opened", at)
		}
	}
}

func TestAStoreIsOpenedWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	server.Kill()
	d := openDomain(t, postgres.Config{URL: server.URL()})
	if err := d.store.Ping(t.Context()); err == nil {
		t.Error("a killed Postgres answers")
	}
	server.Start()
	if err := d.store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPeopleAreKnownByTheNameToldLast(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	for _, told := range []string{"", "Anna", "", "Anne"} {
		if err := d.store.KeepPerson(t.Context(), anna, told); err != nil {
			t.Fatal(err)
		}
	}
	people, err := d.store.People(t.Context(), []id.User{anna, ben, cleo})
	if err != nil || len(people) != 2 || people[0] != person.Called(anna, "Anne") || people[1] != person.Called(ben, "") {
		t.Errorf("%v, %v", people, err)
	}
	if sender := d.send(anna, group).Message.Sender; sender.DisplayName != "Anne" {
		t.Errorf("sent by %v", sender)
	}
}

// What waits long enough goes: a device that nobody has heard of, with all its records, and no other.
func TestDevicesUnseenAreForgotten(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	d.send(anna, group)
	d.confirm(anna, "old", group, 1)
	d.confirm(ben, "old", group, 1)
	d.confirm(anna, "new", group, 1)
	conn := d.conn()
	exec(t, conn, "UPDATE device SET seen_at = seen_at - interval '90 days' WHERE device_id = 'old'")
	d.syncDevice(ben, "old") // is heard of again

	forgotten, err := d.deliveries.ForgetUnseen(t.Context(), time.Now().Add(-89*24*time.Hour))
	if err != nil || forgotten != 1 {
		t.Errorf("%d devices, %v", forgotten, err)
	}
	left := value[string](t, conn, "SELECT string_agg(user_id || ' ' || device_id, ', ' ORDER BY user_id, device_id) FROM device_sync_state")
	if want := "1 new, 2 old"; left != want {
		t.Errorf("left are %q, want %q", left, want)
	}
}
