package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// recorder keeps the statements that a store has run, and how its connections are set up.
type recorder struct {
	mu     sync.Mutex
	seen   []statement
	config *pgx.ConnConfig
}

type statement struct {
	sql  string
	args []any
}

// namePrefix begins each statement of ours, and none that the driver runs by itself.
const namePrefix = "-- name: "

func (s statement) name() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(s.sql, namePrefix), " ")
	return name
}

func (r *recorder) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.record(conn, data.SQL, data.Args)
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.record(conn, data.SQL, data.Args)
}

func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (r *recorder) record(conn *pgx.Conn, sql string, args []any) {
	if strings.HasPrefix(sql, namePrefix) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen, r.config = append(r.seen, statement{sql, args}), conn.Config()
	}
}

// connect makes a connection that plans as the store's own do.
func (r *recorder) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	r.mu.Lock()
	config := r.config.Copy()
	r.mu.Unlock()
	config.Tracer = nil
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// take returns what was run since it was called last.
func (r *recorder) take() []statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// node is a step of how a statement was run, and what it cost with all below it.
type node struct {
	Type  string  `json:"Node Type"`
	Table string  `json:"Relation Name"`
	Index string  `json:"Index Name"`
	Rows  float64 `json:"Actual Rows"`
	Loops float64 `json:"Actual Loops"`
	Hit   int     `json:"Shared Hit Blocks"`
	Read  int     `json:"Shared Read Blocks"`
	WAL   int     `json:"WAL Bytes"`
	// HeapFetches are rows that an index-only scan had to look up in the table.
	HeapFetches int `json:"Heap Fetches"`
	Plans       []node
}

// explain runs a statement as a store did, and takes it back.
func explain(t testing.TB, conn *pgx.Conn, s statement) node {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON) "+s.sql, s.args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", s.name(), err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var explained []struct{ Plan node }
	if err := json.Unmarshal(text, &explained); err != nil {
		t.Fatal(err)
	}
	return explained[0].Plan
}

// written runs a statement as a store did, takes it back, and counts the rows that it wrote, by table.
func written(t testing.TB, conn *pgx.Conn, s statement) map[string]int {
	t.Helper()
	exec(t, conn, "SELECT pg_stat_force_next_flush()") // what the connection has counted before is not to be seen below
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, conn, s.sql, s.args...)
	rows, err := tx.Query(t.Context(), `SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables
		WHERE n_tup_ins + n_tup_upd + n_tup_del > 0`)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	var table string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&table, &n}, func() error { counts[table] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	return counts
}

// rowsRead counts the rows that came out of tables and indexes.
func (n node) rowsRead() (rows int) {
	n.each(0, func(_ int, n node) {
		if strings.HasSuffix(n.Type, "Scan") && (n.Table != "" || n.Index != "") {
			rows += int(n.Rows * n.Loops)
		}
	})
	return rows
}

func (n node) uses(index string) (used bool) {
	n.each(0, func(_ int, n node) { used = used || n.Index == index })
	return used
}

func (n node) readsWholeTable() (whole bool) {
	n.each(0, func(_ int, n node) { whole = whole || n.Type == "Seq Scan" })
	return whole
}

func (n node) String() string {
	var lines strings.Builder
	n.each(0, func(depth int, n node) {
		fmt.Fprintf(&lines, "\n%*s%s %s %s: %v rows, %v times", 2*depth, "", n.Type, n.Table, n.Index, n.Rows, n.Loops)
	})
	return lines.String()
}

func (n node) each(depth int, visit func(int, node)) {
	visit(depth, n)
	for _, child := range n.Plans {
		child.each(depth+1, visit)
	}
}
