package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tidemark/internal/id"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
)

// greatest is how a cursor is commonly kept from moving back. It writes where the cursor stays, too.
const greatest = `
	INSERT INTO channel_read_state AS rs (user_id, channel_id, last_read_seq, joined_seq, member_index)
	VALUES ($1, $2, $3, 0, 0)
	ON CONFLICT (user_id, channel_id) DO UPDATE SET last_read_seq = greatest(rs.last_read_seq, excluded.last_read_seq)`

// The people who mark read, in turn, what they have read. They are shared out among the callers.
const (
	firstRereader = sender + 1
	rereaders     = 512
)

// markReads is what one round found out about marking read what is read.
type markReads struct {
	idle                       cost // of a second in which nobody calls
	whole, statement, greatest window
}

// attributable is the WAL of one whole call, without what Postgres writes anyway.
func (m markReads) attributable() float64 {
	return m.whole.cost[wal] - m.idle[wal]/m.whole.perSecond()
}

// redundantMarkRead compares marking read what is read already with the common way to write it.
func redundantMarkRead(ctx context.Context, l *lab) ([]row, error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: connections})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	pool, err := pgxpool.New(ctx, l.poolURL())
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	readStates := readstate.New(store, nil)
	sent, err := l.advances(ctx)
	if err != nil {
		return nil, err
	}

	whole := func(ctx context.Context, caller, n int) error {
		cursor := readstate.Cursor{ChannelID: largeChannel, UpToSeq: readUpTo}
		result, err := readStates.MarkRead(ctx, rereader(caller, n), "", cursor, readstate.DefaultCap)
		if err == nil && result.Outcome != readstate.Unchanged {
			err = fmt.Errorf("a redundant markRead was answered %s", result.Outcome)
		}
		return err
	}
	statement := func(ctx context.Context, caller, n int) error {
		advance := sent[rereader(caller, n)]
		_, err := pool.Exec(ctx, advance.sql, advance.args...)
		return err
	}
	upsert := func(ctx context.Context, caller, n int) error {
		_, err := pool.Exec(ctx, greatest, rereader(caller, n), largeChannel, readUpTo)
		return err
	}
	for _, warm := range []func(context.Context, int, int) error{whole, statement, upsert} {
		if _, err := inParallel(ctx, l.window/4, warm); err != nil {
			return nil, err
		}
	}
	found, err := measure(ctx, l, durable(l, func(ctx context.Context) (m markReads, err error) {
		if m.idle, err = l.idle(ctx); err != nil {
			return m, err
		}
		// First, because it also clears away what the upserts of the round before have left.
		if m.statement, err = l.watch(ctx, statement); err != nil {
			return m, err
		}
		if m.whole, err = l.watch(ctx, whole); err != nil {
			return m, err
		}
		if m.greatest, err = l.watch(ctx, upsert); err != nil {
			return m, err
		}
		return m, l.unmoved(ctx)
	}))
	if err != nil {
		return nil, err
	}
	return []row{
		found.row("redundant markRead: WAL, less what is written idle", "%.2f B", atMost(1), markReads.attributable),
		found.row("redundant markRead: commits that flush", "%.4f", atMost(0), func(m markReads) float64 { return m.whole.cost[commits] }),
		found.row("GREATEST upsert in its place: WAL", "%.0f B", bound{}, func(m markReads) float64 { return m.greatest.cost[wal] }),
		found.row("redundant markRead, its UPDATE alone / GREATEST upsert: calls a second", "%.2f", atLeast(2), func(m markReads) float64 {
			return m.statement.perSecond() / m.greatest.perSecond()
		}).onTime(),
		// Printed and not judged: the call answers with a badge, which the upsert is spared from.
		found.row("redundant markRead, all of it / GREATEST upsert: calls a second", "%.2f", bound{}, func(m markReads) float64 {
			return m.whole.perSecond() / m.greatest.perSecond()
		}).onTime(),
	}, nil
}

// rereader is whom a caller calls for the nth time. Callers share nobody.
func rereader(caller, n int) id.User {
	return firstRereader + id.User(caller+n*connections%rereaders)
}

// advances returns what Tidemark sends to move each of the rereaders' cursors to where it is.
func (l *lab) advances(ctx context.Context) (map[id.User]*statement, error) {
	advances, err := l.record(ctx, func(ctx context.Context, store *postgres.Store) error {
		for n := range rereaders {
			cursor := readstate.Cursor{ChannelID: largeChannel, UpToSeq: readUpTo}
			if _, err := store.Advance(ctx, firstRereader+id.User(n), "", []readstate.Cursor{cursor}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sent := make(map[id.User]*statement, rereaders)
	for n, advance := range advances {
		sent[firstRereader+id.User(n)] = advance
	}
	return sent, nil
}

// idle returns what a second costs in which nobody calls.
func (l *lab) idle(ctx context.Context) (cost, error) {
	before, err := l.spent(ctx)
	if err != nil {
		return cost{}, err
	}
	begin := time.Now()
	select {
	case <-ctx.Done():
		return cost{}, ctx.Err()
	case <-time.After(l.window):
	}
	after, err := l.spent(ctx)
	return after.less(before).each(time.Since(begin).Seconds()), err
}

// unmoved checks that every way of marking read has left the cursors where they were. It does so on a connection of its
// own: what one that stays has looked at, Postgres may count when the next experiment is under way.
func (l *lab) unmoved(ctx context.Context) (err error) {
	conn, err := pgx.Connect(ctx, l.url())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var moved int
	err = conn.QueryRow(ctx, `SELECT count(*) FROM channel_read_state
		WHERE channel_id = $1 AND user_id >= $2 AND user_id < $3 AND last_read_seq <> $4`,
		largeChannel, firstRereader, firstRereader+rereaders, readUpTo).Scan(&moved)
	if err == nil && moved > 0 {
		err = fmt.Errorf("%d cursors moved", moved)
	}
	return err
}
