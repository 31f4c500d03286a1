package postgres_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
)

// backup is a copy of a database.
type backup struct {
	t     testing.TB
	admin string // where to ask for what concerns whole databases
	name  string
}

// backUp copies a database that nobody is connected to.
func backUp(t testing.TB, at string) backup {
	t.Helper()
	location, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	b := backup{t: t, name: strings.TrimPrefix(location.Path, "/")}
	location.Path = "/postgres"
	b.admin = location.String()
	b.run("CREATE DATABASE " + b.name + "_backup TEMPLATE " + b.name + " STRATEGY file_copy")
	return b
}

// restore puts the copy in the place of the database, whoever is connected.
func (b backup) restore() {
	b.t.Helper()
	b.run("DROP DATABASE "+b.name+" WITH (FORCE)", "ALTER DATABASE "+b.name+"_backup RENAME TO "+b.name)
}

func (b backup) run(commands ...string) {
	b.t.Helper()
	conn := connect(b.t, b.admin)
	for _, command := range commands {
		exec(b.t, conn, command)
	}
}

// The store is restored to head 90 after seq 100 had gone out, and 30 more are sent: its 91 to 100 are others than the
// ones that the phone holds.
func TestL11ARestoredStoreIsAnother(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	before := openDomain(t, postgres.Config{URL: at})
	group := before.group(anna, ben)
	sendMany(before, group, 90)
	before.store.Close()
	copied := backUp(t, at)

	d := openDomain(t, postgres.Config{URL: at})
	sendMany(d, group, 10)
	told := d.sync(ben, "phone", group, delivery.Held{After: new(id.Seq(0))}).(*delivery.Diff)
	d.confirm(ben, "phone", group, told.ToSeq)
	epoch := d.list(ben).StoreEpoch
	if told.ToSeq != 100 || told.StoreEpoch != epoch {
		t.Fatalf("up to %d in %q, and the badges are of %q", told.ToSeq, told.StoreEpoch, epoch)
	}

	copied.restore()
	sendMany(openDomain(t, postgres.Config{URL: at}), group, 30)

	// The process that was there before finds out by itself.
	held := delivery.Held{After: &told.ToSeq, SinceVersion: &told.Version, StoreEpoch: &told.StoreEpoch}
	if after := d.list(ben).StoreEpoch; after == epoch {
		t.Errorf("the store epoch is still %q", after)
	}
	page, err := d.deliveries.SyncDevice(t.Context(), ben, delivery.DeviceRequest{DeviceID: "phone", StoreEpoch: &epoch, First: 1})
	if err != nil || page.Channels[0].Action != delivery.ActionResync || page.StoreEpoch == epoch {
		t.Errorf("sync device: %+v, %v", page, err)
	}
	resync, ok := d.sync(ben, "phone", group, held).(*delivery.Resync)
	if !ok || resync.Reason != delivery.StoreChanged || resync.ToSeq != 120 || resync.StoreEpoch == epoch {
		t.Fatalf("answered with %+v", resync)
	}
	if newest := resync.Messages[len(resync.Messages)-1]; newest.Seq != 120 || len(resync.Messages) != 120 {
		t.Errorf("%d messages up to %d", len(resync.Messages), newest.Seq)
	}
}

// Between the statement that reads where a channel stands and the one that asks for the store epoch, the store is
// restored. What was read of the old one must not be told as the new one's.
func TestL11ARestoreWithinACall(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	before := openDomain(t, postgres.Config{URL: at})
	group := before.group(anna, ben)
	before.store.Close()
	copied := backUp(t, at)
	lost := openDomain(t, postgres.Config{URL: at})
	sendMany(lost, group, 10)
	lost.store.Close()

	d := openDomain(t, postgres.Config{URL: at, Tracer: afterFirst("GetSyncState", copied.restore)})
	answer, err := d.deliveries.Sync(t.Context(), ben, delivery.Request{
		ChannelID: group, DeviceID: "phone", Held: delivery.Held{After: new(id.Seq(10))}, Limit: 1, Cap: 1,
	})
	if err != nil {
		return // to try again is what the client is told
	}
	after := openDomain(t, postgres.Config{URL: at})
	switch answer := answer.(type) {
	case *delivery.Diff:
		if answer.StoreEpoch == after.list(ben).StoreEpoch {
			t.Errorf("the restored store holds no message, and it is told as up to date at %d", answer.ToSeq)
		}
	case *delivery.Resync:
		if answer.ToSeq != 0 {
			t.Errorf("%+v", answer)
		}
	}
}

func TestL08ACursorPastTheNewest(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	sendMany(d, group, 5)
	d.confirm(ben, "phone", group, 5)
	d.confirm(ben, "laptop", group, 3)

	answer := d.sync(ben, "phone", group, delivery.Held{After: new(id.Seq(6))})
	if resync, ok := answer.(*delivery.Resync); !ok || resync.Reason != delivery.CursorAhead || len(resync.Messages) != 5 {
		t.Errorf("answered with %+v", answer)
	}
	answer = d.sync(ben, "phone", group, delivery.Held{})
	if resync, ok := answer.(*delivery.Resync); !ok || resync.Reason != delivery.NewDevice {
		t.Errorf("the record was kept: %+v", answer)
	}
	if diff, ok := d.sync(ben, "laptop", group, delivery.Held{}).(*delivery.Diff); !ok || diff.FromSeq != 4 {
		t.Errorf("another device's record is gone: %+v", diff)
	}
}

func TestL10APhoneRestoredFromABackup(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	sendMany(d, group, 95)
	d.confirm(ben, "phone", group, 95)
	if action := d.syncDevice(ben, "phone").Channels[0].Action; action != delivery.ActionNone {
		t.Errorf("by the record alone: %s", action)
	}

	holds := delivery.Confirmed{ChannelID: group, Seq: 50}
	if action := d.syncDevice(ben, "phone", holds).Channels[0]; action.Action != delivery.ActionDiff || action.LastDeliveredSeq != 50 {
		t.Errorf("sync device: %+v", action)
	}
	if diff := d.sync(ben, "phone", group, delivery.Held{After: &holds.Seq}).(*delivery.Diff); diff.FromSeq != 51 || diff.ToSeq != 95 {
		t.Errorf("sync channel: from %d to %d", diff.FromSeq, diff.ToSeq)
	}
}

func TestL12ADeleteThatCommitsAfterADiffWasRead(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	sendMany(d, group, 3)
	var diff *delivery.Diff
	err := d.store.LockHead(t.Context(), group, func(head channel.Head) error {
		if _, err := head.Delete(t.Context(), 2); err != nil {
			return err
		}
		diff = d.sync(ben, "phone", group, delivery.Held{After: new(id.Seq(3)), SinceVersion: new(id.Seq(0))}).(*delivery.Diff)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(diff.DeletedSeqs) != 0 {
		t.Errorf("what is not committed is told: %v", diff.DeletedSeqs)
	}
	held := delivery.Held{After: &diff.ToSeq, SinceVersion: &diff.Version, StoreEpoch: &diff.StoreEpoch}
	if action := d.syncDevice(ben, "phone", delivery.Confirmed{ChannelID: group, Seq: diff.ToSeq, Version: &diff.Version}); action.Channels[0].Action != delivery.ActionDiff {
		t.Errorf("sync device: %+v", action)
	}
	next := d.sync(ben, "phone", group, held).(*delivery.Diff)
	if diff := cmp.Diff([]id.Seq{2}, next.DeletedSeqs); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

// What is deleted while a diff is put together is in it as what remains, and told again by the next.
func TestADeleteBetweenTheStatementsOfADiff(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	others := openDomain(t, postgres.Config{URL: at})
	group := others.group(anna, ben)
	sendMany(others, group, 3)
	d := openDomain(t, postgres.Config{URL: at, Tracer: afterFirst("GetSyncState", func() {
		others.delete(anna, group, 1)
		others.delete(anna, group, 3)
		others.send(anna, group)
	})})

	first := d.sync(ben, "phone", group, delivery.Held{After: new(id.Seq(1)), SinceVersion: new(id.Seq(0))}).(*delivery.Diff)
	if first.ToSeq != 3 || len(first.Messages) != 2 || !first.Messages[1].Deleted || first.HasMore {
		t.Errorf("first %+v", first)
	}
	held := delivery.Held{After: &first.ToSeq, SinceVersion: &first.Version, StoreEpoch: &first.StoreEpoch}
	next := d.sync(ben, "phone", group, held).(*delivery.Diff)
	slices.Sort(next.DeletedSeqs)
	if diff := cmp.Diff([]id.Seq{1, 3}, next.DeletedSeqs); diff != "" || next.ToSeq != 4 {
		t.Errorf("to %d, deleted (-want +got):\n%s", next.ToSeq, diff)
	}
}

func TestD05ANewDeviceHasTheBadgesOfTheOld(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	sendMany(d, group, 8)
	d.read(ben, group, 5)
	d.confirm(ben, "old phone", group, 8)
	badge := d.badge(ben, group)

	answer := d.sync(ben, "new phone", group, delivery.Held{})
	resync, ok := answer.(*delivery.Resync)
	if !ok || resync.Reason != delivery.NewDevice || len(resync.Messages) != 8 || resync.Badge != badge || badge.Countable != 3 {
		t.Errorf("answered with %+v, and the badge is %+v", answer, badge)
	}
	if action := d.syncDevice(ben, "new phone").Channels[0].Action; action != delivery.ActionResync {
		t.Errorf("sync device: %s", action)
	}
	if action := d.syncDevice(ben, "old phone").Channels[0].Action; action != delivery.ActionNone {
		t.Errorf("the old device: %s", action)
	}
}

// A diff lists so many deletions and no more.
func TestMoreDeletionsThanADiffLists(t *testing.T) {
	t.Parallel()
	const listed = 1000
	d := newDomain(t)
	group := d.group(anna, ben)
	sendMany(d, group, listed+1)
	service := person.Viewer{Role: person.RoleService}
	for seq := id.Seq(1); seq <= listed; seq++ {
		if _, err := d.channels.Delete(t.Context(), service, group, seq); err != nil {
			t.Fatal(err)
		}
	}
	held := delivery.Held{After: new(id.Seq(listed + 1)), SinceVersion: new(id.Seq(0))}
	if diff := d.sync(ben, "phone", group, held).(*delivery.Diff); len(diff.DeletedSeqs) != listed {
		t.Errorf("%d deletions, want %d", len(diff.DeletedSeqs), listed)
	}
	d.delete(anna, group, listed+1)
	answer := d.sync(ben, "phone", group, held)
	if resync, ok := answer.(*delivery.Resync); !ok || resync.Reason != delivery.TooManyDeletions {
		t.Errorf("answered with %+v", answer)
	}
	if badge := d.badge(ben, group); badge.Countable != 0 || badge.UnreadUpperBound() != listed+1 {
		t.Errorf("all is deleted, and the badge is %+v", badge)
	}
}

func sendMany(d *domain, to id.Channel, messages int) {
	d.t.Helper()
	for range messages {
		d.send(anna, to)
	}
}

// While a database is being replaced there is none of its name for a moment.
func TestADatabaseThatIsBeingReplacedIsAway(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna)
	location, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(location.Path, "/")
	location.Path = "/postgres"
	admin := connect(t, location.String())
	exec(t, admin, "DROP DATABASE "+name+" WITH (FORCE)")
	for range 3 {
		_, err := d.readStates.Badge(t.Context(), anna, group, 1)
		wantCode(t, err, fault.Unavailable)
	}
	exec(t, admin, "CREATE DATABASE "+name)
}
