package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
	"tidemark/internal/verify"
)

// damage is done to the first channel.
type damage struct {
	sql   string
	finds string
	// people are whose rows are repaired. Nil: it is the head, so the badge of everybody in the channel has a larger version.
	people []id.User
	// takesBack says that cursors are taken back to the head, where they had been, in an epoch of their own.
	takesBack bool
	// lostVersion, lostJoining and lostReading say that how large the version was, where they joined, and how far they ever
	// read, cannot be known any more.
	lostVersion, lostJoining, lostReading bool
}

func damages() map[string]damage {
	head := func(set, finds string) damage {
		return damage{sql: "UPDATE channel_head SET " + set + " WHERE channel_id = $1", finds: finds}
	}
	readState := func(who id.User, set, finds string) damage {
		sql := "UPDATE channel_read_state SET " + set + " WHERE channel_id = $1 AND user_id = " + who.String()
		return damage{sql: sql, finds: finds, people: []id.User{who}}
	}
	all := map[string]damage{
		"a head too high":            head("high_water_seq = 12", "high_water_seq 12, counted 10"),
		"a head too low":             head("high_water_seq = 8", "high_water_seq 8, counted 10"),
		"a version too low":          head("version = 3", "version 3, counted"),
		"an activity of old":         head("activity = 1", "activity 1, counted"),
		"deletions unknown":          head("last_deleted_seq = 0", "last_deleted_seq 0, counted 10"),
		"deletions that are none":    head("last_deleted_seq = 30", "last_deleted_seq 30, counted 10"),
		"a version of deletions":     head("deleted_version = 0", "deleted_version 0, counted"),
		"a version of no deletion":   head("deleted_version = 99", "deleted_version 99, counted"),
		"everyone unknown":           head("last_everyone_seq = 0", "last_everyone_seq 0, counted 8"),
		"everyone past the end":      head("last_everyone_seq = 30", "last_everyone_seq 30, counted 8"),
		"too many members":           head("member_count = 7", "member_count 7, counted 3"),
		"a cursor past the head":     readState(ben, "last_read_seq = 12", "last_read_seq 12, counted 10"),
		"joined past the head":       readState(ben, "joined_seq = 12, last_read_seq = 12", "joined_seq 12, counted 10"),
		"read past the head":         readState(ben, "receipt_seq = 12", "receipt_seq 12, counted 10"),
		"muted past the head":        readState(ben, "muted_until_seq = 12", "muted_until_seq 12, counted 10"),
		"own messages unknown":       readState(cleo, "last_sent_seq = 0", "last_sent_seq 0, counted 6"),
		"own messages that are none": readState(ben, "last_sent_seq = 9", "last_sent_seq 9, counted 0"),
		"a mention missing": {
			sql: "DELETE FROM mention WHERE channel_id = $1", finds: "mentions_missing 1, counted 0", people: []id.User{ben},
		},
		"a mention too many": {
			sql: "INSERT INTO mention VALUES (3, $1, 1)", finds: "mentions_left_over 1, counted 0", people: []id.User{cleo},
		},
		"a mention of another message": {
			sql:   "UPDATE mention SET seq = 3 WHERE channel_id = $1",
			finds: "mentions_left_over 1, counted 0; mentions_missing 1, counted 0", people: []id.User{ben},
		},
		"everything at once": {
			sql: `WITH head AS (
					UPDATE channel_head
					SET high_water_seq = 14, version = 1, last_deleted_seq = 0, deleted_version = 0, member_count = 0
					WHERE channel_id = $1
				), gone AS (DELETE FROM mention WHERE channel_id = $1)
				UPDATE channel_read_state
				SET joined_seq = 13, last_read_seq = 14, last_sent_seq = 0, muted_until_seq = 14, receipt_seq = 15
				WHERE channel_id = $1`,
			finds: "last_deleted_seq 0", takesBack: true, lostVersion: true, lostJoining: true,
		},
	}
	for name, change := range map[string]func(*damage){
		"a version too low":      func(d *damage) { d.lostVersion = true },
		"a cursor past the head": func(d *damage) { d.takesBack = true },
		"joined past the head":   func(d *damage) { d.takesBack, d.lostJoining = true, true },
		"read past the head":     func(d *damage) { d.lostReading = true },
	} {
		changed := all[name]
		change(&changed)
		all[name] = changed
	}
	return all
}

// Whatever column is damaged, verify finds it, a repair puts it right in a larger version, and nothing else is told of.
func TestRepair(t *testing.T) {
	t.Parallel()
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVerified(t)
			if damage.takesBack { // so that the cursors come to be where they were
				for _, who := range []id.User{anna, ben, cleo} {
					v.read(who, v.here, id.MaxSeq)
				}
			}
			want, before := v.everything()
			exec(t, v.conn(), damage.sql, int64(v.here))
			_, damaged := v.everything()

			report := v.run(verify.Config{})
			found := strings.Join(report.Lines, "\n")
			if report.Drifted == 0 || report.Repaired != 0 || !strings.Contains(found, damage.finds) {
				t.Errorf("it finds %v\n%s", report, found)
			}
			if strings.Contains(found, v.there.String()) {
				t.Errorf("it finds drift where there is none:\n%s", found)
			}
			report = v.run(verify.Config{Repair: true})
			if report.Drifted == 0 || report.Repaired == 0 || !slices.ContainsFunc(report.Lines, func(line string) bool {
				return strings.HasPrefix(line, "repaired ") && strings.Contains(line, damage.finds)
			}) {
				t.Errorf("it repairs %v\n%s", report, strings.Join(report.Lines, "\n"))
			}
			if report := v.run(verify.Config{Repair: true}); report.Drifted > 0 || report.Repaired > 0 {
				t.Errorf("after a repair it finds %v\n%s", report, strings.Join(report.Lines, "\n"))
			}
			damage.check(t, v, want, before, damaged)
		})
	}
}

// check compares badges with those of before the damage, and their versions with those of both.
func (d damage) check(t *testing.T, v *verified, want map[readstate.Seat]readstate.Badge, before, damaged map[readstate.Seat]id.Seq) {
	t.Helper()
	got, after := v.everything()
	for seat, badge := range want {
		repaired := seat.ChannelID == v.here && (d.people == nil || slices.Contains(d.people, seat.UserID))
		if repaired && d.takesBack {
			badge.ReadEpoch++
		}
		if repaired && d.lostJoining {
			badge.JoinedSeq = badge.HighWaterSeq
		}
		if repaired && d.lostReading {
			badge.ReceiptSeq = badge.HighWaterSeq
		}
		if got[seat] != badge {
			t.Errorf("%v: got %+v, want %+v", seat, got[seat], badge)
		}
		switch {
		case !repaired && after[seat] != before[seat]:
			t.Errorf("%v: version %d, though nothing of it was repaired; it was %d", seat, after[seat], before[seat])
		case repaired && (after[seat] <= damaged[seat] || !d.lostVersion && after[seat] <= before[seat]):
			t.Errorf("%v: version %d after the repair, %d before it, %d before the damage", seat, after[seat], damaged[seat], before[seat])
		}
	}
	// Whoever writes and reads goes on as ever.
	sent := v.send(anna, v.here)
	ben := readstate.Seat{UserID: ben, ChannelID: v.here}
	if badge := v.badge(ben.UserID, v.here); sent.Message.Seq != 11 || badge.Countable != want[ben].Countable+1 {
		t.Errorf("the next message is %d, and the badge %+v", sent.Message.Seq, badge)
	}
	if report := v.run(verify.Config{}); report.Drifted > 0 {
		t.Errorf("after the next message it finds %v\n%s", report, strings.Join(report.Lines, "\n"))
	}
}

// A device that was not told of a deletion, because the head did not know of it, is told after the repair.
func TestRepairTellsDevicesOfDeletions(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	for range 3 {
		d.send(anna, group)
	}
	held := func(answer delivery.Sync) delivery.Held {
		diff, ok := answer.(*delivery.Diff)
		if !ok {
			t.Fatalf("%+v is no diff", answer)
		}
		return delivery.Held{After: &diff.ToSeq, SinceVersion: &diff.Version, StoreEpoch: &diff.StoreEpoch}
	}
	has := held(d.sync(ben, "phone", group, delivery.Held{After: new(id.Seq(0))}))
	d.delete(anna, group, 2)
	exec(t, d.conn(), "UPDATE channel_head SET deleted_version = 0")
	missed := d.sync(ben, "phone", group, has).(*delivery.Diff)
	if len(missed.DeletedSeqs) != 0 {
		t.Fatalf("the damage does nothing: %+v", missed)
	}
	has = held(missed)
	if _, err := verify.Run(t.Context(), verify.Config{Store: d.store, Repair: true}); err != nil {
		t.Fatal(err)
	}
	told := d.sync(ben, "phone", group, has).(*delivery.Diff)
	if !slices.Equal(told.DeletedSeqs, []id.Seq{2}) {
		t.Errorf("after the repair it is told of %v", told.DeletedSeqs)
	}
	if again := d.sync(ben, "phone", group, held(told)).(*delivery.Diff); len(again.DeletedSeqs) != 0 {
		t.Errorf("and once more of %v", again.DeletedSeqs)
	}
}

// A device whose record followed a head that was too high is not to miss what gets these seqs.
func TestRepairTakesRecordsOfDevicesBack(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	d.send(anna, group)
	conn := d.conn()
	exec(t, conn, "UPDATE channel_head SET high_water_seq = 5")
	d.confirm(ben, "phone", group, 5)
	if _, err := verify.Run(t.Context(), verify.Config{Store: d.store, Repair: true}); err != nil {
		t.Fatal(err)
	}
	d.send(anna, group)
	answer, ok := d.sync(ben, "phone", group, delivery.Held{}).(*delivery.Diff)
	if !ok || len(answer.Messages) != 1 || answer.Messages[0].Seq != 2 {
		t.Errorf("the phone gets %+v", answer)
	}
}

// A mark read of before the repair must not mark read what comes after it.
func TestALateMarkReadAfterARepairIsVoid(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	d.send(anna, group)
	exec(t, d.conn(), "UPDATE channel_read_state SET last_read_seq = 3 WHERE user_id = 2")
	epoch := d.badge(ben, group).ReadEpoch
	if _, err := verify.Run(t.Context(), verify.Config{Store: d.store, Repair: true}); err != nil {
		t.Fatal(err)
	}
	d.send(anna, group)
	late := readstate.Cursor{ChannelID: group, UpToSeq: 3, ReadEpoch: &epoch}
	result, err := d.readStates.MarkRead(t.Context(), ben, "", late, readstate.DefaultCap)
	if err != nil || result.Outcome != readstate.VoidEpoch || d.badge(ben, group).Countable != 1 {
		t.Errorf("%+v, %v; the badge is %+v", result, err, d.badge(ben, group))
	}
}

// What a head gave out seqs past, and what is gone from the table, is counted no more.
func TestRepairCountsNoMessagesThatAreNone(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	conn := d.conn()
	for _, fault := range []struct {
		sql  string
		want int
	}{
		{"UPDATE channel_head SET high_water_seq = high_water_seq + 4", 3}, // and then two more are sent
		{"DELETE FROM message WHERE seq = 6", 5},
	} {
		d.send(anna, group)
		exec(t, conn, fault.sql)
		d.send(anna, group)
		d.send(anna, group)
		if report, err := verify.Run(t.Context(), verify.Config{Store: d.store, Repair: true}); err != nil || report.Repaired != 1 {
			t.Errorf("%s: %v, %v", fault.sql, report, err)
		}
		report, err := verify.Run(t.Context(), verify.Config{Store: d.store})
		if err != nil || report.Drifted > 0 {
			t.Errorf("%s: %v, %v\n%s", fault.sql, report, err, strings.Join(report.Lines, "\n"))
		}
		if got := d.badge(ben, group).Countable; got != fault.want {
			t.Errorf("%s: %d are unread, want %d", fault.sql, got, fault.want)
		}
	}
}

// A repair takes its turn among those who write, and a message that is under way is in what it counts.
func TestRepairWaitsForWriters(t *testing.T) {
	t.Parallel()
	v := newVerified(t)
	conn := v.conn()
	exec(t, conn, "UPDATE channel_head SET high_water_seq = 12 WHERE channel_id = $1", int64(v.here))
	writer := v.conn()
	tx, err := writer.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM channel_head WHERE channel_id = $1 FOR UPDATE", int64(v.here)); err != nil {
		t.Fatal(err)
	}
	repaired := make(chan error, 1)
	go func() {
		_, err := v.store.Repair(t.Context(), v.here)
		repaired <- err
	}()
	await(t, conn, someoneWaits)
	if _, err := tx.Exec(t.Context(), `WITH head AS (UPDATE channel_head SET high_water_seq = 13, version = version + 1, activity = nextval('activity')
		WHERE channel_id = $1 RETURNING activity)
		INSERT INTO message (channel_id, seq, id, sender_id, created_at, body) SELECT $1, 13, activity, 4, now(), '' FROM head`, int64(v.here)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-repaired; err != nil {
		t.Fatal(err)
	}
	if report := v.run(verify.Config{}); report.Drifted > 0 {
		t.Errorf("it finds %v\n%s", report, strings.Join(report.Lines, "\n"))
	}
	if high := value[int64](t, conn, "SELECT high_water_seq FROM channel_head WHERE channel_id = $1", int64(v.here)); high != 13 {
		t.Errorf("the head is at %d", high)
	}
}

// Repairs take their turn among all that write: none is lost, and nobody waits in a circle.
func TestRepairBesideTraffic(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	channels := []id.Channel{d.group(anna, ben, cleo), d.group(anna, ben, cleo)}
	conn := d.conn()
	stop := d.traffic(channels)
	for range 20 {
		for _, damaged := range channels { // one by one, or it is the damage that waits in a circle
			exec(t, conn, `UPDATE channel_head SET last_deleted_seq = 0, deleted_version = 0, last_everyone_seq = 0, member_count = member_count + 1
				WHERE channel_id = $1`, int64(damaged))
			exec(t, conn, "UPDATE channel_read_state SET last_sent_seq = 0 WHERE channel_id = $1 AND user_id = 1", int64(damaged))
			exec(t, conn, "DELETE FROM mention WHERE channel_id = $1 AND user_id = 2", int64(damaged))
		}
		if _, err := verify.Run(t.Context(), verify.Config{Store: d.store, Repair: true}); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	for range 2 {
		report, err := verify.Run(t.Context(), verify.Config{Store: d.store, Repair: true})
		if err != nil || report.Drifted > 0 {
			t.Errorf("%v, %v\n%s", report, err, strings.Join(report.Lines, "\n"))
		}
	}
	d.store.Close() // what its connections have counted is told at their end
	await(t, conn, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())")
	if n := value[int](t, conn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}
