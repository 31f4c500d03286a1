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
	firstReceiver id.User = 10_000_000 // of those whose numbers are asked for
	firstOther    id.User = 11_000_000 // of those who get the rest of the messages
	others                = 10_000
	firstWriter   id.User = 20_000_000

	// eachWrote is how many messages each wrote to a receiver since they looked.
	eachWrote = 3
	// lookedAgo is how long ago everybody looked, and half as long as messages go back.
	lookedAgo = 30 * 24 * time.Hour
	// glances is how many times each number is asked for in one round.
	glances = 7
	// settling is how many calls a prepared statement needs at most until its plan is the one that stays.
	settling = 10
	// splitPages is by how many pages two scans of as many entries may differ: to make room where the busy one's entry
	// came and went, a page was split on either side of it, for good.
	splitPages = 4
)

// makeClassic makes the table that the classic forms count in. Each of those who write to a receiver did so once before
// the receiver looked. Rows lie in the order in which they were sent.
const makeClassic = `
	CREATE UNLOGGED TABLE classic.separate AS
	WITH wrote AS (
		SELECT r.recipient, n AS sender, CASE WHEN n = 1 THEN r.busiest ELSE @each_wrote::bigint END AS times
		FROM unnest(@recipients::bigint[], @senders::bigint[], @busiest::bigint[]) AS r (recipient, senders, busiest),
			generate_series(1, r.senders) AS n
	)
	SELECT recipient, @first_writer::bigint + sender AS sender, sent_at
	FROM (
		SELECT recipient, sender, @looked::timestamptz + (1 - random()) * @ago::interval AS sent_at
		FROM wrote, generate_series(1, times)
		UNION ALL
		SELECT recipient, sender, @looked::timestamptz - random() * @ago::interval
		FROM wrote
		UNION ALL
		SELECT @first_other::bigint + n % @others::bigint, n / @others::bigint % 20, @looked::timestamptz + (1 - 2 * random()) * @ago::interval
		FROM generate_series(1, @written::bigint - (SELECT sum(times + 1) FROM wrote)) AS n
	) AS sent
	ORDER BY sent_at`

// What Tidemark would have written for the same messages.
const (
	makeArrivals = `
		INSERT INTO arrival (recipient, sender, latest)
		SELECT recipient, sender, (extract(epoch FROM max(sent_at)) * 1000000)::bigint
		FROM classic.separate
		GROUP BY recipient, sender
		ORDER BY max(sent_at)`
	makeActivity = `
		INSERT INTO user_activity (user_id, acknowledged, acknowledged_at)
		SELECT DISTINCT recipient, (extract(epoch FROM $1::timestamptz) * 1000000)::bigint, $1::timestamptz
		FROM classic.separate`
	// writeOnAndOn has one arrival moved as often as its sender writes, each time in a transaction.
	writeOnAndOn = `
		DO $$ BEGIN
			FOR n IN 1..%d LOOP
				UPDATE arrival SET latest = latest + 1 WHERE recipient = %d AND sender = %d;
				COMMIT;
			END LOOP;
		END $$`
)

// classic is a way to count distinct senders in the messages themselves.
type classic struct {
	table, label string
	indexes      []string
}

func classics() []classic {
	return []classic{
		{"separate", "separate indexes", []string{"recipient", "sent_at", "sender"}},
		{"wrong", "(time, recipient, sender)", []string{"sent_at, recipient, sender"}},
		{"fitting", "(recipient, time, sender)", []string{"recipient, sent_at, sender"}},
	}
}

// receiver is somebody whose number is asked for.
type receiver struct {
	user    id.User
	label   string
	senders int
	busiest int // how many messages one of the senders wrote
}

// way is one way to ask for a number: a prepared statement, and what it takes.
type way struct {
	label, statement string
	args             func(id.User) []any
}

// numbers is where the ways are asked, on one connection.
type numbers struct {
	*lab
	conn      *pgx.Conn
	looked    time.Time
	receivers []receiver
	ways      []way // ours is the first
}

// ours is the place of Tidemark's statement, as Tidemark asks it.
const ours = 0

// glance is what one round found out, by receiver and way.
type glance struct {
	plans [][]plan
	took  [][]time.Duration
}

// newlyUnread compares how Tidemark counts who wrote with the common ways to do it.
func newlyUnread(ctx context.Context, l *lab) (table []row, err error) {
	conn, err := pgx.Connect(ctx, l.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	n := &numbers{lab: l, conn: conn, looked: time.Now().Add(-lookedAgo).UTC().Truncate(time.Microsecond)}
	for i, senders := range l.senders {
		n.receivers = append(n.receivers, receiver{firstReceiver + id.User(i), short(senders) + " wrote", senders, eachWrote})
	}
	few := n.receivers[0]
	n.receivers = append(n.receivers, receiver{
		firstReceiver + id.User(len(l.senders)), few.label + ", one " + short(l.busy) + " times", few.senders, l.busy,
	})
	defer func() { err = errors.Join(err, n.remove(context.WithoutCancel(ctx))) }()
	if err := n.make(ctx); err != nil {
		return nil, err
	}
	if err := n.prepare(ctx); err != nil {
		return nil, err
	}
	if err := n.agree(ctx); err != nil {
		return nil, err
	}
	all, err := measure(ctx, l, n.round)
	if err != nil {
		return nil, err
	}
	return n.rows(all), nil
}

// make fills the tables of all ways with the same messages.
func (n *numbers) make(ctx context.Context) error {
	n.say("making data: %d messages, three times", n.written)
	var recipients, senders, busiest []int64
	for _, r := range n.receivers {
		recipients, senders, busiest = append(recipients, int64(r.user)), append(senders, int64(r.senders)), append(busiest, int64(r.busiest))
	}
	run := func(sql string, args ...any) error {
		if _, err := n.conn.Exec(ctx, sql, args...); err != nil {
			return fmt.Errorf("%.60q: %w", sql, err)
		}
		return nil
	}
	for _, sql := range []string{
		"SET random_page_cost = 1.1", "SET jit = off", // as Tidemark's connections are
		"SELECT setseed(0.5)", "CREATE SCHEMA classic",
	} {
		if err := run(sql); err != nil {
			return err
		}
	}
	err := run(makeClassic, pgx.NamedArgs{
		"recipients": recipients, "senders": senders, "busiest": busiest, "each_wrote": eachWrote, "looked": n.looked,
		"ago": lookedAgo, "first_writer": firstWriter, "first_other": firstOther, "others": others, "written": n.written,
	})
	if err != nil {
		return err
	}
	for _, c := range classics() {
		if c.table != "separate" {
			if err := run("CREATE UNLOGGED TABLE classic." + c.table + " AS SELECT * FROM classic.separate"); err != nil {
				return err
			}
		}
		for _, columns := range c.indexes {
			if err := run("CREATE INDEX ON classic." + c.table + " (" + columns + ")"); err != nil {
				return err
			}
		}
		if err := run("VACUUM (ANALYZE) classic." + c.table); err != nil {
			return err
		}
	}
	busy := n.receivers[len(n.receivers)-1]
	if err := run(makeArrivals); err != nil {
		return err
	}
	for _, sql := range []string{
		"SET synchronous_commit = off",
		fmt.Sprintf(writeOnAndOn, busy.busiest, busy.user, firstWriter+1),
		"RESET synchronous_commit",
	} {
		if err := run(sql); err != nil {
			return err
		}
	}
	// This one commit waits for the disk to have those before it, without which a vacuum does not see them as done.
	if err := run(makeActivity, n.looked); err != nil {
		return err
	}
	// A vacuum by itself leaves index entries alone while less than 2 % of the table's pages have dead rows.
	return run("VACUUM (ANALYZE, INDEX_CLEANUP ON) arrival, user_activity, lease")
}

// remove drops what make has made.
func (n *numbers) remove(ctx context.Context) error {
	var errs []error
	for _, sql := range []string{
		"DROP SCHEMA IF EXISTS classic CASCADE",
		fmt.Sprintf("DELETE FROM arrival WHERE recipient >= %d", firstReceiver),
		fmt.Sprintf("DELETE FROM user_activity WHERE user_id >= %d", firstReceiver),
		"VACUUM arrival, user_activity",
	} {
		_, err := n.conn.Exec(ctx, sql)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// prepare has each way's statement prepared, and called for others until its plan is the one that stays.
func (n *numbers) prepare(ctx context.Context) error {
	// At the first call the store also asks for what it will remember.
	sent, err := n.record(ctx, func(ctx context.Context, store *postgres.Store) error {
		read := newlyunread.New(newlyunread.Config{Store: store})
		_, first := read.Get(ctx, firstOther, newlyunread.DefaultFirst)
		_, second := read.Get(ctx, firstOther, newlyunread.DefaultFirst)
		return errors.Join(first, second)
	})
	if err != nil {
		return err
	}
	asked := sent[len(sent)-1]
	statements := map[string]string{"ours": asked.sql}
	n.ways = []way{
		{"ours", "ours", func(user id.User) []any { return []any{int64(user), asked.args[1]} }},
		{"ours to the last", "ours", func(user id.User) []any { return []any{int64(user), int32(n.written)} }},
	}
	for _, c := range classics() {
		statements[c.table] = "SELECT count(DISTINCT sender) FROM classic." + c.table + " WHERE recipient = $1 AND sent_at > $2"
		n.ways = append(n.ways, way{c.label, c.table, func(user id.User) []any { return []any{int64(user), n.looked} }})
	}
	for name, sql := range statements {
		if _, err := n.conn.Prepare(ctx, name, sql); err != nil {
			return err
		}
	}
	for _, w := range n.ways {
		for other := range settling {
			if err := n.ask(ctx, w, firstOther+id.User(other)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask has a number counted and told.
func (n *numbers) ask(ctx context.Context, w way, user id.User) error {
	_, err := n.conn.Exec(ctx, w.statement, w.args(user)...)
	return err
}

// agree checks that all ways come to the number that it is.
func (n *numbers) agree(ctx context.Context) error {
	for _, r := range n.receivers {
		for _, w := range n.ways {
			var (
				count           int
				senders, latest []int64
			)
			into := []any{&count}
			if w.statement == "ours" {
				into = []any{nil, nil, nil, nil, nil, &senders, &latest}
			}
			args := w.args(r.user)
			if err := n.conn.QueryRow(ctx, w.statement, args...).Scan(into...); err != nil {
				return err
			}
			want := r.senders
			if w.statement == "ours" {
				count = len(senders)
				want = min(want, int(args[1].(int32)))
			}
			if count != want || len(latest) != len(senders) {
				return fmt.Errorf("%s: %s counts %d, want %d", r.label, w.label, count, want)
			}
		}
	}
	return nil
}

func (n *numbers) round(ctx context.Context) (g glance, err error) {
	for _, r := range n.receivers {
		plans := make([]plan, len(n.ways))
		for i, w := range n.ways {
			if plans[i], err = explain(ctx, n.conn, w.statement, w.args(r.user)); err != nil {
				return g, err
			}
		}
		took, err := byTurns(len(n.ways), glances, func(i, _ int) error { return n.ask(ctx, n.ways[i], r.user) })
		if err != nil {
			return g, err
		}
		g.plans, g.took = append(g.plans, plans), append(g.took, took)
	}
	return g, nil
}

// rows tells, for each receiver, what ours takes, and how many times that the other ways do.
func (n *numbers) rows(found rounds[glance]) []row {
	var table []row
	for r, receiver := range n.receivers {
		quantities := []struct {
			what, format string
			of           func(g glance, way int) float64
			timed        bool
		}{
			{"pages", "%.0f", func(g glance, way int) float64 { return g.plans[r][way].pages }, false},
			{"rows looked at", "%.0f", func(g glance, way int) float64 { return g.plans[r][way].looked }, false},
			{"median time", "%.2f ms", func(g glance, way int) float64 { return 1000 * g.took[r][way].Seconds() }, true},
		}
		for _, q := range quantities {
			add := func(what, format string, number func(glance) float64) {
				line := found.row(receiver.label+": "+q.what+", "+what, format, bound{}, number)
				line.timed = q.timed
				table = append(table, line)
			}
			add(n.ways[ours].label, q.format, func(g glance) float64 { return q.of(g, ours) })
			for w, way := range n.ways {
				if w == ours || way.statement == "ours" && receiver.senders <= n.senders[0] {
					continue
				}
				add(way.label+" / ours", "%.1f", func(g glance) float64 { return q.of(g, w) / q.of(g, ours) })
			}
		}
	}
	sum := func(number func(plan) float64) func(glance) float64 {
		return func(g glance) (total float64) {
			for _, plans := range g.plans {
				for w, way := range n.ways {
					if way.statement == "ours" {
						total += number(plans[w])
					}
				}
			}
			return total
		}
	}
	return append(table,
		found.row("ours, all of these: scans that are not of an index alone", "%.0f", atMost(0), sum(func(p plan) float64 { return p.otherScans })),
		found.row("ours, all of these: heap fetches", "%.0f", atMost(0), sum(func(p plan) float64 { return p.heapFetches })),
		found.row("ours, one of the 10 wrote "+short(n.busy)+" times and not "+short(eachWrote)+": pages more", "%.0f", atMost(splitPages), func(g glance) float64 {
			return g.plans[len(n.receivers)-1][ours].pages - g.plans[0][ours].pages
		}),
	)
}
