package postgres_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
)

func TestR01TwoDevicesReadAtTheSameTime(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	for range 20 {
		d.send(anna, group)
	}
	for round := range 1000 {
		if _, err := d.readStates.MarkUnread(t.Context(), ben, group, 1, nil, readstate.DefaultCap); err != nil {
			t.Fatal(err)
		}
		cursors := []id.Seq{5, 9}
		rand.Shuffle(2, func(i, j int) { cursors[i], cursors[j] = cursors[j], cursors[i] })
		d.readAtOnce(ben, group, cursors)
		if got := d.badge(ben, group); got.LastReadSeq != 9 || got.UnreadUpperBound() != 11 {
			t.Fatalf("round %d: cursor %d, bound %d", round, got.LastReadSeq, got.UnreadUpperBound())
		}
	}
}

func TestR04ManyReadsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	const reads = 200
	group := d.group(anna, ben)
	for range reads {
		d.send(anna, group)
	}
	cursors := make([]id.Seq, reads)
	for i, n := range rand.Perm(reads) {
		cursors[i] = id.Seq(n + 1)
	}
	d.readAtOnce(ben, group, cursors)
	if got := d.badge(ben, group); got.LastReadSeq != reads || got.Countable != 0 {
		t.Errorf("cursor %d, unread %d", got.LastReadSeq, got.Countable)
	}
}

func TestR07TheFirstTwoReadsOfANewcomer(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna)
	conn := d.conn()
	for newcomer := ben; newcomer < ben+50; newcomer++ {
		d.add(group, newcomer)
		first := d.send(anna, group).Message.Seq
		second := d.send(anna, group).Message.Seq
		d.readAtOnce(newcomer, group, []id.Seq{second, first})
		if got := d.badge(newcomer, group).LastReadSeq; got != second {
			t.Errorf("cursor %d, want %d", got, second)
		}
		if rows := value[int](t, conn, "SELECT count(*) FROM channel_read_state WHERE user_id = $1", newcomer); rows != 1 {
			t.Errorf("%d rows", rows)
		}
	}
}

// A read that is answered at once and one that must wait for a mark unread of the same moment end in one order or the
// other: unread, whoever came first, is what was asked to be.
func TestAMarkUnreadIsNotUndoneByAReadOfTheSameMoment(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	for range 9 {
		d.send(anna, group)
	}
	for range 200 {
		d.read(ben, group, 6)
		epoch := d.badge(ben, group).ReadEpoch
		var running errgroup.Group
		running.Go(func() error {
			cursor := readstate.Cursor{ChannelID: group, UpToSeq: 9, ReadEpoch: &epoch}
			_, err := d.readStates.MarkRead(t.Context(), ben, "laptop", cursor, readstate.DefaultCap)
			return err
		})
		running.Go(func() error {
			_, err := d.readStates.MarkUnread(t.Context(), ben, group, 4, &epoch, readstate.DefaultCap)
			return err
		})
		if err := running.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := d.badge(ben, group); got.LastReadSeq != 3 || got.ReadEpoch != epoch+1 {
			t.Fatalf("cursor %d in epoch %d, want 3 in %d", got.LastReadSeq, got.ReadEpoch, epoch+1)
		}
	}
}

// Where a message comes between the two looks of a mark read, the first says that the cursor cannot move, and the second
// that it could.
func TestAMessageBetweenTheTwoLooksOfAMarkRead(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	others := openDomain(t, postgres.Config{URL: url})
	group := others.group(anna, ben)
	d := openDomain(t, postgres.Config{URL: url, Tracer: afterFirst("AdvanceReadStates", func() { others.send(anna, group) })})

	result := d.read(ben, group, 1)
	if result.Outcome != readstate.Advanced || *result.Badge != others.badge(ben, group) {
		t.Errorf("%s, %+v; the badge is %+v", result.Outcome, *result.Badge, others.badge(ben, group))
	}
}

func TestAMessageBetweenTheTwoLooksOfManyMarkReads(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	others := openDomain(t, postgres.Config{URL: url})
	moving, staying, awaiting := others.group(anna, ben), others.group(anna, ben), others.group(anna, ben)
	others.send(anna, moving)
	d := openDomain(t, postgres.Config{URL: url, Tracer: afterFirst("AdvanceReadStates", func() { others.send(anna, awaiting) })})

	results, err := d.readStates.MarkManyRead(t.Context(), ben, "", []readstate.Cursor{
		{ChannelID: awaiting, UpToSeq: 1}, {ChannelID: staying, UpToSeq: 0}, {ChannelID: moving, UpToSeq: 1},
	}, readstate.DefaultCap)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []readstate.Outcome{readstate.Advanced, readstate.Unchanged, readstate.Advanced} {
		if got := results[i]; got.Outcome != want || *got.Badge != others.badge(ben, got.ChannelID) {
			t.Errorf("result %d: %s, want %s; %+v", i, got.Outcome, want, *got.Badge)
		}
	}
}

// All cursors move, or none where one of them cannot.
func TestManyMarkReadsAreOneStep(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	d := openDomain(t, postgres.Config{URL: at, LockTimeout: time.Millisecond})
	free, held := d.group(anna, ben), d.group(anna, ben)
	d.send(anna, free)
	d.send(anna, held)
	conn := d.conn()
	exec(t, conn, "BEGIN")
	exec(t, conn, "SELECT FROM channel_read_state WHERE user_id = $1 AND channel_id = $2 FOR UPDATE", ben, held)
	cursors := []readstate.Cursor{{ChannelID: held, UpToSeq: 1}, {ChannelID: free, UpToSeq: 1}}
	_, err := d.readStates.MarkManyRead(t.Context(), ben, "", cursors, readstate.DefaultCap)
	wantCode(t, err, fault.Unavailable)
	if got := d.badge(ben, free); got.LastReadSeq != 0 {
		t.Errorf("cursor %d after a call that failed", got.LastReadSeq)
	}

	exec(t, conn, "ROLLBACK")
	results, err := d.readStates.MarkManyRead(t.Context(), ben, "", cursors, readstate.DefaultCap)
	if err != nil || results[0].Outcome != readstate.Advanced || results[1].Outcome != readstate.Advanced {
		t.Errorf("tried again: %+v, %v", results, err)
	}
}

// readAtOnce marks read from as many devices as there are cursors.
func (d *domain) readAtOnce(who id.User, in id.Channel, cursors []id.Seq) {
	d.t.Helper()
	var running errgroup.Group
	for _, upTo := range cursors {
		running.Go(func() error {
			_, err := d.readStates.MarkRead(d.t.Context(), who, "", readstate.Cursor{ChannelID: in, UpToSeq: upTo}, readstate.DefaultCap)
			return err
		})
	}
	if err := running.Wait(); err != nil {
		d.t.Fatal(err)
	}
}

// afterFirst is a tracer that does something when the first query of that name has ended, or a batch that begins with it.
func afterFirst(query string, do func()) pgx.QueryTracer {
	return &tracer{prefix: namePrefix + query + " ", do: sync.OnceFunc(do)}
}

type tracer struct {
	prefix string
	do     func()
}

type isTheQuery struct{}

func (tr *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, isTheQuery{}, strings.HasPrefix(data.SQL, tr.prefix))
}

func (tr *tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	tr.ended(ctx)
}

func (tr *tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, isTheQuery{}, strings.HasPrefix(data.Batch.QueuedQueries[0].SQL, tr.prefix))
}

func (tr *tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (tr *tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	tr.ended(ctx)
}

func (tr *tracer) ended(ctx context.Context) {
	if ctx.Value(isTheQuery{}) == true {
		tr.do()
	}
}
