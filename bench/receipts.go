package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
)

const (
	receiptGroup  id.Channel = 40_000_000
	receiptSender            = firstMember - 1
	firstMember   id.User    = 40_000_001
	receiptPage              = 50
	// marking is how many rounds of people there are to read on. They are the last of the members.
	marking = 10
)

// crowdOfReaders is one group in which most have read everything, and the others have stopped anywhere. Everybody is in
// other groups too, so that their rows do not lie side by side.
type crowdOfReaders struct {
	members, head int // members besides the sender, and the newest message
	other         int // groups that each member is in besides
	kept          int // messages of which the dearest schemes keep readers
	marks         int // mark reads of each length in one round
}

func (l *lab) readers() crowdOfReaders {
	if l.quick {
		return crowdOfReaders{members: 999, head: 10_000, other: 3, kept: 10, marks: 5}
	}
	return crowdOfReaders{members: 9_999, head: 10_000, other: 40, kept: 100, marks: 40}
}

// watermark is how far a member has read.
func (c crowdOfReaders) watermark(member int) int {
	if member%10 < 6 {
		return c.head
	}
	return member * 7919 % (c.head + 1)
}

// passed are the lengths of mark reads.
func passed() []int { return []int{1, 100, 1000} }

const (
	makeReaders = `
		WITH head AS (
			INSERT INTO channel_head (channel_id, high_water_seq, version, activity, member_count, members_ever)
			VALUES (@group::bigint, @messages::bigint, 1, nextval('activity'), @members::bigint + 1, @members::bigint + 1)
		)
		INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, receipt_seq, joined_seq, member_index)
		SELECT @first::bigint + m - 1, @group::bigint + g, read_to, read_to, 0, m
		FROM generate_series(0, @members::bigint) AS m, generate_series(0, @other::bigint) AS g, LATERAL (
			SELECT CASE WHEN m = 0 OR (m - 1) % 10 < 6 THEN @messages::bigint ELSE (m - 1) * 7919 % (@messages::bigint + 1) END AS read_to
		) AS reading
		ORDER BY m, random()`
	makeReadMessages = `
		INSERT INTO message (channel_id, seq, id, sender_id, created_at, body)
		SELECT @group::bigint, n, nextval('activity'), @first::bigint - 1, now(), 'Message number ' || n
		FROM generate_series(1, @messages::bigint) AS n`
	removeReaders = `
		DELETE FROM channel_read_state WHERE channel_id >= @group::bigint AND channel_id <= @group::bigint + @other::bigint;
		DELETE FROM message WHERE channel_id = @group::bigint;
		DELETE FROM channel_head WHERE channel_id = @group::bigint;
		DROP SCHEMA IF EXISTS receipts CASCADE`
	// rewind takes people back to the middle of the channel, so that they can read on.
	rewind = `
		UPDATE channel_read_state SET last_read_seq = @messages::bigint / 2, receipt_seq = @messages::bigint / 2
		WHERE channel_id = @group::bigint AND user_id >= @first::bigint + @members::bigint - @back::bigint`
	watermarkIndex = "CREATE INDEX receipt_watermark ON channel_read_state (channel_id, receipt_seq)"
)

func (c crowdOfReaders) args() pgx.NamedArgs {
	return pgx.NamedArgs{
		"group": receiptGroup, "first": firstMember, "members": c.members, "messages": c.head, "other": c.other,
		"kept": c.kept, "back": marking * c.marks,
	}
}

// reading is where the schemes are compared.
type reading struct {
	*lab
	crowdOfReaders
	pool    *pgx.Conn
	store   *postgres.Store
	redis   *goredis.Client
	schemes []scheme
	turn    int // how many rounds of people have read on
}

// receipts is what one round found out, by scheme.
type receipts struct {
	bytes   []float64
	marks   [][]time.Duration // by scheme and length
	counts  []time.Duration
	lists   []time.Duration
	marked  []cost // Tidemark's own, by length
	indexed cost   // one with an index of watermarks
	warming time.Duration
}

// readReceipts compares how Tidemark knows who has read with the common ways to do it.
func readReceipts(ctx context.Context, l *lab) (table []row, err error) {
	r := &reading{lab: l, crowdOfReaders: l.readers()}
	defer func() { err = errors.Join(err, r.remove(context.WithoutCancel(ctx))) }()
	if err := r.make(ctx); err != nil {
		return nil, err
	}
	if err := r.agree(ctx); err != nil {
		return nil, err
	}
	found, err := measure(ctx, l, r.round)
	if err != nil {
		return nil, err
	}
	table = r.table(found)
	if l.plot != "" {
		return table, os.WriteFile(l.plot, r.picture(found), 0o644)
	}
	return table, nil
}

func (r *reading) make(ctx context.Context) (err error) {
	r.say("making a group of %d and %d messages", r.members, r.head)
	for _, sql := range []string{makeReaders, makeReadMessages} {
		if _, err := r.admin.Exec(ctx, sql, r.args()); err != nil {
			return err
		}
	}
	if _, err := r.admin.Exec(ctx, "VACUUM (ANALYZE) channel_read_state, message"); err != nil {
		return err
	}
	if r.pool, err = pgx.Connect(ctx, r.url()); err != nil {
		return err
	}
	if r.store, err = postgres.Open(ctx, postgres.Config{URL: r.url(), MaxConnections: 1}); err != nil {
		return err
	}
	options, err := goredis.ParseURL(r.lab.redis.URL())
	if err != nil {
		return err
	}
	r.redis = goredis.NewClient(options)
	r.schemes = r.allSchemes()
	for _, s := range r.schemes {
		r.say("making receipts: %s", s.name)
		if err := s.make(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (r *reading) remove(ctx context.Context) error {
	var errs []error
	if r.redis != nil {
		errs = append(errs, r.redis.FlushDB(ctx).Err(), r.redis.Close())
	}
	if r.store != nil {
		r.store.Close()
	}
	if r.pool != nil {
		errs = append(errs, r.pool.Close(ctx))
	}
	for _, sql := range []string{"DROP INDEX IF EXISTS receipt_watermark", removeReaders} {
		var args []any
		if sql == removeReaders {
			args = []any{pgx.QueryExecModeSimpleProtocol, r.args()}
		}
		_, err := r.admin.Exec(ctx, sql, args...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// agree fails unless all schemes count the same readers.
func (r *reading) agree(ctx context.Context) error {
	for _, back := range []int{0, 1, r.kept / 2, r.kept - 1} {
		seq := r.head - back
		want := 0
		for m := range r.members {
			if r.watermark(m) >= seq {
				want++
			}
		}
		for _, s := range r.schemes {
			if got, err := s.count(ctx, seq); err != nil || got != want {
				return fmt.Errorf("%s counts %d readers of message %d, want %d: %w", s.name, got, seq, want, err)
			}
		}
	}
	return nil
}

func (r *reading) round(ctx context.Context) (found receipts, err error) {
	for _, s := range r.schemes {
		size, err := s.size(ctx)
		if err != nil {
			return found, err
		}
		found.bytes = append(found.bytes, size)
	}
	newest := func(n int) int { return r.head - n%r.kept }
	if found.counts, err = byTurns(len(r.schemes), r.marks, func(way, n int) error {
		_, err := r.schemes[way].count(ctx, newest(n))
		return err
	}); err != nil {
		return found, err
	}
	if found.lists, err = byTurns(len(r.schemes), r.marks, func(way, n int) error {
		return r.schemes[way].lists(ctx, newest(n))
	}); err != nil {
		return found, err
	}
	if found.marks, err = r.readOn(ctx); err != nil {
		return found, err
	}
	for _, length := range passed() {
		spent, err := r.costOfMarks(ctx, length)
		if err != nil {
			return found, err
		}
		found.marked = append(found.marked, spent)
	}
	watching := []id.User{firstMember}
	warming, err := byTurns(1, r.marks, func(_, n int) error {
		_, err := r.store.Watch(ctx, receiptGroup, id.Seq(newest(n)), watching)
		return err
	})
	if err != nil {
		return found, err
	}
	found.warming = warming[0]
	return found, r.withIndex(ctx, &found)
}

// readOn has people read on in each scheme, by each length in turn, and returns the times by scheme. In each round they
// are others: who has read something does not read it again.
func (r *reading) readOn(ctx context.Context) ([][]time.Duration, error) {
	if _, err := r.admin.Exec(ctx, rewind, r.args()); err != nil {
		return nil, err
	}
	var all [][]time.Duration
	for _, s := range r.schemes {
		took, err := byTurns(len(passed()), r.marks, func(turn, n int) error {
			from := r.head/2 + 1
			for _, before := range passed()[:turn] {
				from += before
			}
			return s.read(ctx, r.members-1-r.turn%marking*r.marks-n, from, from+passed()[turn]-1)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	r.turn++
	return all, nil
}

// costOfMarks returns what Postgres writes for a mark read that passes so many messages.
func (r *reading) costOfMarks(ctx context.Context, length int) (cost, error) {
	for _, sql := range []string{rewind, "VACUUM channel_read_state"} { // in this order, rows have room to change in place
		var args []any
		if sql == rewind {
			args = []any{r.args()}
		}
		if _, err := r.admin.Exec(ctx, sql, args...); err != nil {
			return cost{}, err
		}
	}
	if err := r.step(ctx, length); err != nil { // pages are written whole after a checkpoint, or once more for their hints
		return cost{}, err
	}
	before, err := r.spent(ctx)
	if err != nil {
		return cost{}, err
	}
	if err := r.step(ctx, 2*length); err != nil {
		return cost{}, err
	}
	after, err := r.spent(ctx)
	return after.less(before).each(float64(r.marks)), err
}

// step has everybody who reads on read up to so many past the middle.
func (r *reading) step(ctx context.Context, length int) error {
	for n := range r.marks {
		if err := r.advance(ctx, r.members-1-n, r.head/2+length); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) advance(ctx context.Context, member, to int) error {
	cursor := readstate.Cursor{ChannelID: receiptGroup, UpToSeq: id.Seq(to)}
	moves, err := r.store.Advance(ctx, firstMember+id.User(member), "", []readstate.Cursor{cursor})
	if err == nil && !moves[0].Moved {
		err = fmt.Errorf("member %d does not move to %d", member, to)
	}
	return err
}

// withIndex measures what a mark read would cost if watermarks had an index.
func (r *reading) withIndex(ctx context.Context, found *receipts) (err error) {
	if _, err := r.admin.Exec(ctx, watermarkIndex); err != nil {
		return err
	}
	defer func() {
		_, dropped := r.admin.Exec(context.WithoutCancel(ctx), "DROP INDEX receipt_watermark")
		err = errors.Join(err, dropped)
	}()
	found.indexed, err = r.costOfMarks(ctx, 1)
	return err
}

func (r *reading) table(found rounds[receipts]) (table []row) {
	add := func(what string, must bound, number func(receipts) float64) {
		table = append(table, found.row(what, "%.0f B", must, number))
	}
	micro := func(what string, number func(receipts) time.Duration) {
		table = append(table, found.row(what, "%.0f µs", bound{}, func(f receipts) float64 {
			return float64(number(f).Nanoseconds()) / 1000
		}).onTime())
	}
	for i, s := range r.schemes {
		limit := bound{}
		if s.limit {
			limit = atMost(float64((r.members + 8) / 8))
		}
		add(s.name+": bytes for a message", limit, func(f receipts) float64 { return f.bytes[i] })
	}
	for at, length := range passed() {
		for i, s := range r.schemes {
			micro(fmt.Sprintf("%s: markRead that passes %d", s.name, length), func(f receipts) time.Duration { return f.marks[i][at] })
		}
	}
	for i, s := range r.schemes {
		micro(s.name+": count", func(f receipts) time.Duration { return f.counts[i] })
	}
	for i, s := range r.schemes {
		micro(s.name+": both lists, 50 each", func(f receipts) time.Duration { return f.lists[i] })
	}
	micro("to warm what somebody watches", func(f receipts) time.Duration { return f.warming })
	for at, length := range passed() {
		add(fmt.Sprintf("markRead that passes %d: WAL", length), bound{}, func(f receipts) float64 { return f.marked[at][wal] })
	}
	add("markRead that passes 1000 and 1, apart by: WAL", atMost(64), func(f receipts) float64 {
		return math.Abs(f.marked[len(f.marked)-1][wal] - f.marked[0][wal])
	})
	add("markRead with an index of watermarks: WAL", bound{}, func(f receipts) float64 { return f.indexed[wal] })
	return table
}
