package postgres_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
)

// An offline queue that is replayed, and a second device that reads the same, must cost the database nothing. Without a
// byte of log there is no transaction id either: one that was taken is logged when it ends.
func TestRedundantCallsWriteNothing(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t) // of its own: the log that is measured is the server's
	d := openDomain(t, postgres.Config{URL: server.URL()})
	group := d.group(anna, ben)
	for range 9 {
		d.send(anna, group)
	}
	d.read(ben, group, 9)
	if _, err := d.readStates.MarkUnread(t.Context(), ben, group, 5, nil, readstate.DefaultCap); err != nil {
		t.Fatal(err)
	}
	conn := d.conn()
	for name, call := range map[string]func() (readstate.Outcome, error){
		"read already": func() (readstate.Outcome, error) {
			return d.outcome(ben, readstate.Cursor{ChannelID: group, UpToSeq: 4})
		},
		"of an older epoch": func() (readstate.Outcome, error) {
			return d.outcome(ben, readstate.Cursor{ChannelID: group, UpToSeq: 9, ReadEpoch: new(0)})
		},
		"past the newest, read already": func() (readstate.Outcome, error) {
			return d.outcome(anna, readstate.Cursor{ChannelID: group, UpToSeq: 99})
		},
		"several at once": func() (readstate.Outcome, error) {
			cursors := []readstate.Cursor{{ChannelID: group, UpToSeq: 1}, {ChannelID: group, UpToSeq: 2}}
			results, err := d.readStates.MarkManyRead(t.Context(), ben, "", cursors, readstate.DefaultCap)
			if err != nil {
				return "", err
			}
			return results[1].Outcome, nil
		},
		"a mark unread of an older epoch": func() (readstate.Outcome, error) {
			result, err := d.readStates.MarkUnread(t.Context(), ben, group, 1, new(0), readstate.DefaultCap)
			return result.Outcome, err
		},
		"a mute that is there": func() (readstate.Outcome, error) {
			_, err := d.readStates.SetMuted(t.Context(), ben, group, false, readstate.DefaultCap)
			return "", err
		},
	} {
		// Postgres writes a line of its own into the log now and then; it does not do so five times in a row.
		fewest := int64(math.MaxInt64)
		for range 5 {
			before := logPosition(t, conn)
			for range 100 {
				switch outcome, err := call(); {
				case err != nil:
					t.Fatal(err)
				case outcome == readstate.Advanced, outcome == readstate.MovedBack:
					t.Fatalf("%s: %s", name, outcome)
				}
			}
			fewest = min(fewest, logPosition(t, conn)-before)
		}
		if fewest != 0 {
			t.Errorf("%s: %d bytes of log for 100 calls", name, fewest)
		}
	}
}

func (d *domain) outcome(who id.User, cursor readstate.Cursor) (readstate.Outcome, error) {
	result, err := d.readStates.MarkRead(d.t.Context(), who, "", cursor, readstate.DefaultCap)
	return result.Outcome, err
}

func TestStatementsOfACall(t *testing.T) {
	t.Parallel()
	var seen recorder
	d := openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t), Tracer: &seen, MaxConnections: 1})
	group := d.group(anna, ben)
	d.send(anna, group)
	d.send(anna, group)
	d.list(anna) // the store epoch is asked for once on a connection
	for _, test := range []struct {
		name string
		call func()
		want []string
	}{
		{"send", func() { d.send(anna, group) }, []string{"SendMessage"}},
		{"mark read", func() { d.read(ben, group, 3) }, []string{"AdvanceReadStates", "ListBadgesOf"}},
		{"mark read, read already", func() { d.read(ben, group, 2) }, []string{"AdvanceReadStates", "ListBadgesOf"}},
		{"badge", func() { d.badge(ben, group) }, []string{"ListBadgesOf"}},
		{"badges", func() { d.list(ben) }, []string{"ListBadges"}},
		{"badges of somebody in no channel", func() { d.list(cleo) }, []string{"ListBadges", "GetStoreEpoch"}},
		{"new device", func() { d.sync(ben, "phone", group, delivery.Held{}) }, []string{"GetSyncState", "ListMessagesBefore", "ListBadgesOf"}},
		{"diff", func() { d.sync(ben, "phone", group, delivery.Held{After: new(id.Seq(1))}) }, []string{"GetSyncState", "ListMessagesAfter", "ListBadgesOf"}},
		{"sync device", func() { d.syncDevice(ben, "phone") }, []string{"TouchDevice", "ListSyncStates"}},
	} {
		seen.take()
		test.call()
		var got []string
		for _, s := range seen.take() {
			got = append(got, s.name())
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func (d *domain) list(who id.User) readstate.Page {
	d.t.Helper()
	page, err := d.readStates.List(d.t.Context(), who, readstate.Filter{First: readstate.MaxPage, Cap: readstate.DefaultCap})
	if err != nil {
		d.t.Fatal(err)
	}
	return page
}

func (d *domain) syncDevice(who id.User, device id.Device, held ...delivery.Confirmed) delivery.ActionPage {
	d.t.Helper()
	page, err := d.deliveries.SyncDevice(d.t.Context(), who, delivery.DeviceRequest{DeviceID: device, Held: held, First: 500})
	if err != nil {
		d.t.Fatal(err)
	}
	return page
}

func TestASendCostsTheSameInAnyChannel(t *testing.T) {
	t.Parallel()
	var seen recorder
	server := pgtest.NewServer(t) // of its own: the log that is measured is the server's
	d := openDomain(t, postgres.Config{URL: server.URL(), Tracer: &seen})
	conn := d.conn()
	cost := func(members int) (rows map[string]int, bytes int64) {
		group := d.group(anna)
		exec(t, conn, `INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, joined_seq, member_index)
			SELECT n, $1, 0, 0, n FROM generate_series(2, $2::int) n`, group, members)
		exec(t, conn, "UPDATE channel_head SET member_count = $2 WHERE channel_id = $1", group, members)
		exec(t, conn, "VACUUM ANALYZE")
		bytes = math.MaxInt64
		for range 20 { // a page that is begun, or a line of the server's own, is none of the send's
			before := logPosition(t, conn)
			draft := channel.Draft{ChannelID: group, Body: "hello", Mentions: []id.User{ben, cleo}}
			if _, err := d.channels.Send(t.Context(), person.Viewer{ID: anna}, draft, readstate.DefaultCap); err != nil {
				t.Fatal(err)
			}
			bytes = min(bytes, logPosition(t, conn)-before)
		}
		sends := seen.take()
		return written(t, conn, sends[len(sends)-1]), bytes
	}
	fewRows, fewBytes := cost(4)
	manyRows, manyBytes := cost(50_000)
	want := map[string]int{"channel_head": 1, "channel_read_state": 1, "message": 1, "mention": 2, "outbox": 1}
	if !maps.Equal(fewRows, want) || !maps.Equal(manyRows, want) {
		t.Errorf("rows written with 4 members %v, with 50,000 %v, want %v", fewRows, manyRows, want)
	}
	if ratio := float64(manyBytes) / float64(fewBytes); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("bytes of log with 4 members %d, with 50,000 %d", fewBytes, manyBytes)
	}
}

func logPosition(t testing.TB, conn *pgx.Conn) int64 {
	t.Helper()
	return value[int64](t, conn, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
}

// Whatever a device has missed, catching up reads a page of it.
func TestASyncReadsAPageWhateverTheGap(t *testing.T) {
	t.Parallel()
	const messages = 1_000_000
	var seen recorder
	d := openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t), Tracer: &seen, MaxConnections: 1})
	group := d.group(anna, ben)
	conn := d.conn()
	exec(t, conn, `INSERT INTO message (channel_id, seq, id, sender_id, created_at, body)
		SELECT $1, n, n, 1, now(), 'hello' FROM generate_series(1, $2::int) n`, group, messages)
	exec(t, conn, `UPDATE channel_head SET high_water_seq = $2 WHERE channel_id = $1`, group, messages)
	exec(t, conn, `ANALYZE`)
	d.list(ben) // the store epoch is asked for once on a connection
	conn = seen.connect(t)
	streaming := delivery.New(d.store, d.readStates, messages)
	for name, deliveries := range map[string]*delivery.Deliveries{"diff or resync": d.deliveries, "diff": streaming} {
		for _, gap := range []id.Seq{10, 1000, 100_000, messages} {
			after := messages - gap
			seen.take()
			answer, err := deliveries.Sync(t.Context(), ben, delivery.Request{
				ChannelID: group, DeviceID: "phone", Held: delivery.Held{After: &after}, Limit: 200, Cap: readstate.DefaultCap,
			})
			if err != nil {
				t.Fatal(err)
			}
			statements := seen.take()
			var rows, blocks int
			for _, s := range statements {
				plan := explain(t, conn, s)
				rows += plan.rowsRead()
				blocks += plan.Hit + plan.Read
			}
			// A page of messages and its senders, which are one; what the badge is made of; the epoch of the store.
			if len(statements) != 3 || rows > 200+200+20 || blocks > 1000 {
				t.Errorf("%s, gap %d: %T by %d statements, %d rows, %d blocks", name, gap, answer, len(statements), rows, blocks)
			}
		}
	}
}

func TestTheListOfBadgesGoesByPrimaryKeys(t *testing.T) {
	t.Parallel()
	var seen recorder
	d := openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t), Tracer: &seen})
	conn := d.conn()
	for _, sql := range []string{
		`INSERT INTO channel_head (channel_id, activity, high_water_seq, member_count)
			SELECT n, n, 20, 25 FROM generate_series(1, 20000) n`,
		`INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, joined_seq, member_index)
			SELECT u, (u * 7919 + c * 104729) % 20000 + 1, 10, 0, u FROM generate_series(1, 4000) u, generate_series(1, 50) c
			UNION ALL
			SELECT u, c * 39 + u % 39 + 1, 10, 0, u FROM generate_series(4001, 4100) u, generate_series(1, 500) c
			ON CONFLICT DO NOTHING`,
		`INSERT INTO message (channel_id, seq, id, sender_id, created_at, body)
			SELECT c, n, c * 20 + n, 1, now(), 'hello' FROM generate_series(1, 10000) c, generate_series(1, 20) n`,
		`INSERT INTO mention (user_id, channel_id, seq)
			SELECT user_id, channel_id, 15 FROM channel_read_state WHERE channel_id % 10 = 0`,
		`ANALYZE`,
	} {
		exec(t, conn, sql)
	}
	for who, channels := range map[id.User]int{7: 50, 4007: 500} {
		seen.take()
		if got := len(d.list(who).Badges); got != channels {
			t.Fatalf("%d badges, want %d", got, channels)
		}
		list, conn := seen.take()[0], seen.connect(t)
		if _, err := conn.Prepare(t.Context(), "list", list.sql); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			exec(t, conn, "SET plan_cache_mode = "+mode)
			plan := explain(t, conn, statement{sql: fmt.Sprintf("EXECUTE list (%d, %d)", list.args...)})
			if !plan.uses("channel_read_state_pkey") || !plan.uses("channel_head_pkey") || plan.readsWholeTable() {
				t.Errorf("%d channels, %s: %s", channels, mode, plan)
			}
			if rows := plan.rowsRead(); rows > 3*channels {
				t.Errorf("%d channels, %s: %d rows read", channels, mode, rows)
			}
		}
	}
}

// Heads and read states change in place: no index is touched, and a page makes room for its next versions by itself.
// That needs old versions to be dead for everybody. A transaction that stays open anywhere on the server keeps them, so
// this server is of the test's own. What is left, some updates in a thousand, is where a call that runs beside has kept
// an old version alive.
func TestHeadsAndReadStatesAreUpdatedInPlace(t *testing.T) {
	t.Parallel()
	d := openDomain(t, postgres.Config{URL: pgtest.NewServer(t).URL()})
	const groups, rounds = 6, 500
	var running errgroup.Group
	for range groups {
		group := d.group(anna, ben)
		running.Go(func() error {
			for range rounds {
				sent, err := d.trySend(t.Context(), anna, group, "")
				if err != nil {
					return err
				}
				if _, err := d.outcome(ben, readstate.Cursor{ChannelID: group, UpToSeq: sent.Message.Seq}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	d.store.Close() // what its connections have counted is told at their end
	conn := d.conn()
	for table, updates := range map[string]int{"channel_head": groups * rounds, "channel_read_state": 2 * groups * rounds} {
		await(t, conn, fmt.Sprintf("(SELECT n_tup_upd >= %d FROM pg_stat_user_tables WHERE relname = '%s')", updates, table))
		inPlace := value[float64](t, conn, "SELECT n_tup_hot_upd::float / n_tup_upd FROM pg_stat_user_tables WHERE relname = $1", table)
		if inPlace < 0.97 {
			t.Errorf("%s: %.1f %% of updates in place", table, 100*inPlace)
		}
	}
}
