package e2e_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// connect opens a connection of the test's own to a database. It is closed at the end of the test, if not before.
func connect(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// hold runs a statement in a transaction, and keeps its locks until release is called.
func hold(t *testing.T, database, sql string, args ...any) (release func()) {
	t.Helper()
	conn := connect(t, database)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// holdHead has every writer of a channel wait.
func holdHead(t *testing.T, database, channel string) (release func()) {
	t.Helper()
	return hold(t, database, "SELECT FROM channel_head WHERE channel_id = $1::text::bigint FOR UPDATE", channel)
}

// awaitBlocked waits until somebody waits for a lock in the database.
func awaitBlocked(t *testing.T, database string) {
	t.Helper()
	conn := connect(t, database)
	defer conn.Close(t.Context())
	eventually(t, "a call waits for a lock", func() bool {
		return scan[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	})
}

// scan returns the one value that a query has.
func scan[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// contents is all that a database holds.
func contents(t *testing.T, database string) string {
	t.Helper()
	conn := connect(t, database)
	defer conn.Close(t.Context())
	var all strings.Builder
	for _, table := range []string{
		"users", "channel", "channel_head", "channel_read_state", "message", "mention", "device", "device_sync_state", "user_activity",
	} {
		rows := scan[string](t, conn, "SELECT coalesce(string_agg(r::text, E'\\n' ORDER BY r::text), '') FROM "+table+" r")
		all.WriteString(table + "\n" + rows + "\n")
	}
	return all.String()
}

// unchanged compares a database with what it held before.
func unchanged(t *testing.T, database, before string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(contents(t, database), "\n")); diff != "" {
		t.Errorf("the database has changed:\n%s", diff)
	}
}

// administer runs statements in the database that every Postgres has.
func administer(t *testing.T, database string, statements ...string) {
	t.Helper()
	address, _ := named(t, database)
	conn := connect(t, address)
	defer conn.Close(t.Context())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// disconnect is a statement that ends all connections to a database.
func disconnect(name string) string {
	return "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'"
}

// named parts a database's URL into that of its Postgres and its name.
func named(t *testing.T, database string) (postgres, name string) {
	t.Helper()
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	name = strings.TrimPrefix(address.Path, "/")
	address.Path = "/postgres"
	return address.String(), name
}
