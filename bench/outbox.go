package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
)

const (
	// pollOutbox is how often it is looked whether all of the outbox is done.
	pollOutbox = 10 * time.Millisecond
	// drained bounds how long that may take.
	drained = 5 * time.Minute
)

// gathering is channels of one size, in which everybody writes in turn. Its people and channels are numbered from first.
type gathering struct {
	first             int64
	channels, members int
	messages          int
}

// events is how many people the messages count to, each told apart.
func (g gathering) events() int { return g.messages * (g.members - 1) }

// pairs is how many arrivals there are at the end.
func (g gathering) pairs() int {
	return g.channels * (g.members - 1) * min(g.members, g.messages/g.channels)
}

func (g gathering) args() pgx.NamedArgs {
	return pgx.NamedArgs{"first": g.first, "channels": g.channels, "members": g.members, "messages": g.messages}
}

const (
	makeMembers = `
		INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, joined_seq, member_index)
		SELECT @first::bigint + c * @members::bigint + m, @first::bigint + c, 0, 0, m
		FROM generate_series(0, @channels::bigint - 1) AS c, generate_series(0, @members::bigint - 1) AS m`
	// fillOutbox writes what sends would have left, channel by channel in turn.
	fillOutbox = `
		INSERT INTO outbox (channel_id, seq, sender_id, member_count)
		SELECT
			@first::bigint + n % @channels::bigint,
			1 + n / @channels::bigint,
			@first::bigint + n % @channels::bigint * @members::bigint + n / @channels::bigint % @members::bigint,
			@members::bigint
		FROM generate_series(0, @messages::bigint - 1) AS n`
	countPairs = `
		SELECT count(*) FROM arrival
		WHERE recipient >= @first::bigint AND recipient < @first::bigint + @channels::bigint * @members::bigint`
	isDrained = "SELECT NOT EXISTS (SELECT FROM outbox) AND NOT EXISTS (SELECT FROM arrival_event)"

	// withoutOutbox has sends leave no row in the outbox, and do all else as ever.
	withoutOutbox = `
		CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER nothing BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION nothing()`
	withOutbox = "DROP FUNCTION IF EXISTS nothing CASCADE"
)

// passages is what one round found out about the way from the outbox to arrivals, and about what the outbox costs.
type passages struct {
	direct, groups pace
	// The same where 5 % of the people look at their icons, so that there are copies of them.
	copied, groupsCopied     pace
	copyWrites, groupsWrites float64 // to Redis, for an event
	// The WAL of all that a worker writes.
	directWAL, groupsWAL float64
	// A send, and one that leaves no row in the outbox.
	send, bare cost
}

// arriving measures how fast a worker takes messages to the arrivals of those to whom they count.
func arriving(ctx context.Context, l *lab) ([]row, error) {
	direct := gathering{first: 5_000_000, channels: 200, members: 2, messages: l.waiting[0]}
	groups := gathering{first: 6_000_000, channels: 10, members: newlyunread.DefaultMaxMembers, messages: l.waiting[1]}
	for _, g := range []gathering{direct, groups} {
		if _, err := l.admin.Exec(ctx, makeMembers, g.args()); err != nil {
			return nil, err
		}
	}
	if _, err := l.admin.Exec(ctx, "ANALYZE channel_read_state"); err != nil {
		return nil, err
	}
	round := func(ctx context.Context) (a passages, err error) {
		if a.direct, a.directWAL, err = l.drain(ctx, direct); err != nil {
			return a, err
		}
		if a.copied, a.copyWrites, err = l.drainIntoCopies(ctx, direct); err != nil {
			return a, err
		}
		if a.groups, a.groupsWAL, err = l.drain(ctx, groups); err != nil {
			return a, err
		}
		if a.groupsCopied, a.groupsWrites, err = l.drainIntoCopies(ctx, groups); err != nil {
			return a, err
		}
		if a.send, err = l.costOfSends(ctx, smallChannel); err != nil {
			return a, err
		}
		a.bare, err = l.withoutOutbox(ctx)
		return a, err
	}
	if _, err := round(ctx); err != nil { // first, arrivals are new: those that are measured move, as nearly all do
		return nil, err
	}
	found, err := measure(ctx, l, durable(l, round))
	if err != nil {
		return nil, err
	}
	return []row{
		found.row("outbox to arrivals, direct channels: messages a second", "%.0f", bound{}, func(a passages) float64 { return a.direct.perSecond() }).onTime(),
		found.row("outbox to arrivals, direct channels: WAL for a message", "%.0f B", bound{}, func(a passages) float64 { return a.directWAL }),
		found.row("outbox to copies, direct channels: messages a second", "%.0f", bound{}, func(a passages) float64 { return a.copied.perSecond() }).onTime(),
		found.row("outbox to copies / to arrivals, direct channels: messages a second", "%.2f", bound{}, func(a passages) float64 {
			return a.copied.perSecond() / a.direct.perSecond()
		}).onTime(),
		found.row("outbox to copies, direct channels: writes to Redis for a message", "%.2f", bound{}, func(a passages) float64 { return a.copyWrites }).onTime(),
		found.row("outbox to arrivals, groups of 100: events a second", "%.0f", bound{}, func(a passages) float64 { return a.groups.perSecond() }).onTime(),
		found.row("outbox to arrivals, groups of 100: WAL for an event", "%.0f B", bound{}, func(a passages) float64 { return a.groupsWAL }),
		found.row("outbox to copies, groups of 100: events a second", "%.0f", bound{}, func(a passages) float64 { return a.groupsCopied.perSecond() }).onTime(),
		found.row("outbox to copies / to arrivals, groups of 100: events a second", "%.2f", bound{}, func(a passages) float64 {
			return a.groupsCopied.perSecond() / a.groups.perSecond()
		}).onTime(),
		found.row("outbox to copies, groups of 100: writes to Redis for an event", "%.2f", bound{}, func(a passages) float64 { return a.groupsWrites }).onTime(),
		found.row("a send: statements that the outbox adds", "%.0f", bound{}, func(a passages) float64 { return a.send[statements] - a.bare[statements] }),
		found.row("a send: WAL that the outbox adds", "%.0f B", bound{}, func(a passages) float64 { return a.send[wal] - a.bare[wal] }),
		found.row("a send: WAL", "%.0f B", bound{}, func(a passages) float64 { return a.send[wal] }),
	}, nil
}

// withoutOutbox returns what a send costs that leaves no row in the outbox.
func (l *lab) withoutOutbox(ctx context.Context) (c cost, err error) {
	defer func() {
		_, dropped := l.admin.Exec(context.WithoutCancel(ctx), withOutbox)
		err = errors.Join(err, dropped)
	}()
	if _, err := l.admin.Exec(ctx, withoutOutbox); err != nil {
		return c, err
	}
	return l.costOfSends(ctx, smallChannel)
}

// drain fills the outbox and has one worker take all of it to arrivals. It returns how many events that was in what
// time, and the WAL for each.
func (l *lab) drain(ctx context.Context, g gathering) (p pace, walEach float64, err error) {
	if err := l.fill(ctx, g); err != nil {
		return p, 0, err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: connections})
	if err != nil {
		return p, 0, err
	}
	defer store.Close()
	before, err := l.spent(ctx)
	if err != nil {
		return p, 0, err
	}
	if p, err = l.empty(ctx, g, store, nil); err != nil {
		return p, 0, err
	}
	after, err := l.spent(ctx)
	return p, (after[wal] - before[wal]) / float64(p.calls), err
}

// drainIntoCopies does the same with copies of some of the people, and returns the writes to Redis for an event.
func (l *lab) drainIntoCopies(ctx context.Context, g gathering) (p pace, writesEach float64, err error) {
	c, err := l.openCopies(ctx)
	if err != nil {
		return p, 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	var looking []id.User
	for n := int64(0); n < int64(g.channels*g.members); n += lookOnceIn {
		looking = append(looking, id.User(g.first+n))
	}
	err = working(ctx, c.kept(), func(ctx context.Context, _ *newlyunread.Worker) error { return c.look(ctx, looking) })
	if err != nil {
		return p, 0, err
	}
	if err := l.fill(ctx, g); err != nil {
		return p, 0, err
	}
	before, err := c.calls(ctx, "evalsha")
	if err != nil {
		return p, 0, err
	}
	if p, err = l.empty(ctx, g, c.store, c.kept().Projection); err != nil {
		return p, 0, err
	}
	after, err := c.calls(ctx, "evalsha")
	if err != nil {
		return p, 0, err
	}
	return p, float64(after-before) / float64(p.calls), c.agree(ctx, looking)
}

// fill has the outbox hold all messages.
func (l *lab) fill(ctx context.Context, g gathering) error {
	for _, sql := range []string{"TRUNCATE outbox, arrival_event", fillOutbox, "VACUUM (ANALYZE) outbox, arrival_event, arrival, lease, worker"} {
		var args []any
		if sql == fillOutbox {
			args = []any{g.args()}
		}
		if _, err := l.admin.Exec(ctx, sql, args...); err != nil {
			return err
		}
	}
	return nil
}

// empty has one worker empty the outbox.
func (l *lab) empty(ctx context.Context, g gathering, store *postgres.Store, projection newlyunread.Projection) (p pace, err error) {
	watch := new(watch)
	config := newlyunread.WorkerConfig{Queue: newWatchedQueue(store, watch), Projection: projection, Announcer: watch}
	begin := time.Now()
	err = working(ctx, config, func(ctx context.Context, worker *newlyunread.Worker) error {
		if err := l.awaitDrained(ctx); err != nil {
			return err
		}
		if err := watch.awaitTold(ctx); err != nil {
			return err
		}
		p = pace{calls: g.events(), took: time.Since(begin)}
		switch stats := worker.Stats(); {
		case stats.Parked > 0:
			return fmt.Errorf("%d rows were set aside", stats.Parked)
		case projection != nil && stats.Generations > 0:
			return fmt.Errorf("all copies of a partition became old %d times", stats.Generations)
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	var pairs int
	if err := l.admin.QueryRow(ctx, countPairs, g.args()).Scan(&pairs); err != nil {
		return p, err
	}
	if pairs != g.pairs() {
		return p, fmt.Errorf("there are %d arrivals, want %d", pairs, g.pairs())
	}
	return p, nil
}

// awaitDrained returns when nothing waits in the outbox any more, nor on its way from there.
func (l *lab) awaitDrained(ctx context.Context) error {
	for {
		var empty bool
		if err := l.admin.QueryRow(ctx, isDrained).Scan(&empty); err != nil || empty {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollOutbox):
		}
	}
}
