package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/postgres"
)

// cost is what was spent, in things that can be counted.
type cost [7]float64

// counted is how many calls are counted where all cost the same.
const counted = 20

// What is counted.
const (
	statements = iota // sent to Postgres
	rows              // that they returned
	wal               // bytes of the write-ahead log
	commits           // transactions that had something to make durable
	written           // rows inserted, updated and deleted
	looked            // rows and entries of indexes that were read for them
	pages             // that those were on
)

func (c cost) less(other cost) cost {
	for i := range c {
		c[i] -= other[i]
	}
	return c
}

// each returns the share of one call, or of one second.
func (c cost) each(of float64) cost {
	for i := range c {
		c[i] /= of
	}
	return c
}

// spent returns what Postgres has counted since it was made.
func (l *lab) spent(ctx context.Context) (cost, error) {
	var c cost
	err := l.admin.QueryRow(ctx, `
		SELECT
			(pg_current_wal_insert_lsn() - '0/0')::float8,
			pg_snapshot_xmax(pg_current_snapshot())::text::float8,
			(SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables)::float8,
			(SELECT sum(seq_tup_read) FROM pg_stat_user_tables)::float8 + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)::float8,
			(SELECT sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read) FROM pg_statio_user_tables)::float8`,
	).Scan(&c[wal], &c[commits], &c[written], &c[looked], &c[pages])
	if err != nil {
		return cost{}, fmt.Errorf("read what was spent: %w", err)
	}
	return c, nil
}

// costOf returns what one of several calls costs on a connection of their own. There must be more than a few calls:
// Postgres plans a statement anew each time at first, and then once for all that follow, which is what a server's
// connections have.
func (l *lab) costOf(ctx context.Context, calls int, call func(ctx context.Context, store *postgres.Store, n int) error) (cost, error) {
	if err := l.awaitAlone(ctx); err != nil {
		return cost{}, err
	}
	before, err := l.spent(ctx)
	if err != nil {
		return cost{}, err
	}
	sent, err := l.record(ctx, func(ctx context.Context, store *postgres.Store) error {
		for n := range calls {
			if err := call(ctx, store, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = l.awaitAlone(ctx)
	}
	if err != nil {
		return cost{}, err
	}
	after, err := l.spent(ctx)
	for _, statement := range sent {
		after[statements]++
		after[rows] += float64(statement.rows)
	}
	return after.less(before).each(float64(calls)), err
}

// window is what calls in parallel came to: how fast they were, and what each cost.
type window struct {
	pace
	cost
}

// watch lets callers call for a window, and counts what reaches the write-ahead log.
func (l *lab) watch(ctx context.Context, call func(ctx context.Context, caller, n int) error) (window, error) {
	before, err := l.spent(ctx)
	if err != nil {
		return window{}, err
	}
	pace, err := inParallel(ctx, l.window, call)
	if err != nil {
		return window{}, err
	}
	after, err := l.spent(ctx)
	return window{pace, after.less(before).each(float64(pace.calls))}, err
}

// awaitAlone returns when nobody but us is connected to the database. Postgres counts what a connection did, at the
// latest, when it ends.
func (l *lab) awaitAlone(ctx context.Context) error {
	const others = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())"
	for {
		var connected bool
		if err := l.admin.QueryRow(ctx, others).Scan(&connected); err != nil || !connected {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// record returns the statements that work sends on a connection of its own, and closes it.
func (l *lab) record(ctx context.Context, work func(context.Context, *postgres.Store) error) ([]*statement, error) {
	var seen recorder
	store, err := postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: 1, Tracer: &seen})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	err = work(ctx, store)
	return seen.sent, err
}

// statement is one as it was sent, and how many rows it returned.
type statement struct {
	sql  string
	args []any
	rows int64
}

// recorder notes the statements of one connection.
type recorder struct{ sent []*statement }

var (
	_ pgx.QueryTracer = (*recorder)(nil)
	_ pgx.BatchTracer = (*recorder)(nil)
)

// TraceQueryStart implements pgx.QueryTracer.
func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceQueryStartData) context.Context {
	r.sent = append(r.sent, &statement{sql: start.SQL, args: start.Args})
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (r *recorder) TraceQueryEnd(_ context.Context, _ *pgx.Conn, end pgx.TraceQueryEndData) {
	r.sent[len(r.sent)-1].rows = end.CommandTag.RowsAffected()
}

// TraceBatchStart implements pgx.BatchTracer.
func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, query pgx.TraceBatchQueryData) {
	r.sent = append(r.sent, &statement{sql: query.SQL, args: query.Args, rows: query.CommandTag.RowsAffected()})
}

// TraceBatchEnd implements pgx.BatchTracer.
func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
