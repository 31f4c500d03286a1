package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	one, other := connect(t, pgtest.NewDatabase(t)), connect(t, pgtest.NewDatabase(t))
	if _, err := one.Exec(t.Context(), "INSERT INTO users (id) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if got := count(t, one); got != 1 {
		t.Errorf("%d users in the database they were put in, want 1", got)
	}
	if got := count(t, other); got != 0 {
		t.Errorf("%d users in another database, want 0", got)
	}
}

func TestManyDatabasesAtOnce(t *testing.T) {
	t.Parallel()
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			if got := count(t, connect(t, pgtest.NewDatabase(t))); got != 0 {
				t.Errorf("%d users in a new database, want 0", got)
			}
		})
	}
}

func TestCommittedOutlivesAKill(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	url := server.URL()
	before := connect(t, url)
	if _, err := before.Exec(t.Context(), "INSERT INTO users (id) VALUES (1)"); err != nil {
		t.Fatal(err)
	}

	server.Kill()
	if err := before.Ping(t.Context()); err == nil {
		t.Error("a killed Postgres answers")
	}
	server.Start()
	if server.URL() != url {
		t.Errorf("it moved from %s to %s", url, server.URL())
	}
	if got := count(t, connect(t, url)); got != 1 {
		t.Errorf("%d users are left, want 1", got)
	}
	server.Kill() // and a killed one must not hold up the end of the test
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func count(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM users").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
