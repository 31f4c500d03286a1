package e2e_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestL03DeletedWhileAway(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, channel := s.as(2), s.group(1, 2)
	phone := s.as(1).on("phone")
	b.sends(channel, 6)
	held := phone.sync(channel, vars{"after": 0})
	expect(t, "messages", len(held.Messages), 6)
	phone.confirm(channel, held.cursor())
	expect(t, "the order", phone.order(channel).Action, "NONE")

	unread := phone.badge(channel).Unread.Count
	b.delete(channel, 5)
	b.delete(channel, 2)
	b.sends(channel, 1)
	b.delete(channel, 7) // which the device never held
	for what, said := range map[string]vars{"what the device says": held.holds(), "the record": nil} {
		diff := phone.sync(channel, said)
		slices.Sort(diff.DeletedSeqs)
		if !slices.Equal(diff.DeletedSeqs, []int64{2, 5}) {
			t.Errorf("by %s the diff lists %v, want 2 and 5", what, diff.DeletedSeqs)
		}
		expect(t, "messages", len(diff.Messages), 1)
		expect(t, "unread", diff.Badge.Unread.Count, unread-2)
		// What it has heard of is not told again.
		expect(t, "deletions of the next diff", len(phone.sync(channel, diff.holds()).DeletedSeqs), 0)
	}
	expect(t, "the order", phone.order(channel).Action, "DIFF")
	expect(t, "the order by what it says", phone.order(channel, held.cursor()).Action, "DIFF")
}

func TestL03DeletionAloneIsALack(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, channel := s.as(2), s.group(1, 2)
	phone := s.as(1).on("phone")
	b.sends(channel, 6)
	held := phone.sync(channel, vars{"after": 0})
	phone.confirm(channel, held.cursor())
	b.delete(channel, 3)
	expect(t, "the order", phone.order(channel).Action, "DIFF")
	diff := phone.sync(channel, nil)
	if len(diff.Messages) != 0 || !slices.Equal(diff.DeletedSeqs, []int64{3}) || diff.FromSeq != 7 || diff.ToSeq != 6 {
		t.Errorf("the diff is %+v", diff)
	}
	phone.confirm(channel, diff.cursor())
	expect(t, "the order after it", phone.order(channel).Action, "NONE")
}

func TestL03MoreDeletionsThanADiffLists(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_SYNC_MAX_GAP=2000")
	b, channel := s.as(2), s.group(1, 2)
	phone := s.as(1).on("phone")
	b.sends(channel, 1001)
	held := phone.sync(channel, vars{"after": 1001}).holds()
	b.deletes(channel, 1001)
	answer := phone.sync(channel, held)
	expect(t, "the answer", answer.Reason, "TOO_MANY_DELETIONS")
	expect(t, "unread", answer.Badge.Unread.Count, 0)
	expect(t, "the order", phone.order(channel, vars{"seq": 1001, "version": held["since"]}).Action, "RESYNC")
}

func TestL08CursorAhead(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, channel := s.as(2), s.group(1, 2)
	phone := s.as(1).on("phone")
	b.sends(channel, 9)
	phone.confirm(channel, vars{"seq": 9})
	expect(t, "the order", phone.order(channel, vars{"seq": 10}).Action, "RESYNC")
	for _, ahead := range []vars{{"after": 10}, {"after": 9007199254740991}, {"after": 9, "since": 1000000}} {
		answer := phone.sync(channel, ahead)
		expect(t, "the answer", answer.Reason, "CURSOR_AHEAD")
		expect(t, "messages", len(answer.Messages), 9)
		expect(t, "the newest", answer.ToSeq, 9)
		expect(t, "the answer by the record, which is reset", phone.sync(channel, nil).Reason, "NEW_DEVICE")
		phone.confirm(channel, answer.cursor())
		expect(t, "the order when it has started afresh", phone.order(channel).Action, "NONE")
	}
}

func TestL10RestoredPhone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, channel := s.as(2), s.group(1, 2)
	phone := s.as(1).on("phone")
	b.sends(channel, 95)
	b.delete(channel, 30)
	now := phone.sync(channel, vars{"after": 0, "limit": 500})
	phone.confirm(channel, now.cursor())
	expect(t, "the order by the record", phone.order(channel).Action, "NONE")

	order := phone.order(channel, vars{"seq": 50})
	expect(t, "the order", order.Action, "DIFF")
	expect(t, "what it holds", order.LastDeliveredSeq, 50)
	diff := phone.sync(channel, vars{"after": 50})
	expect(t, "the diff's first", diff.FromSeq, 51)
	expect(t, "the diff's last", diff.ToSeq, 95)
	expect(t, "messages", len(diff.Messages), 45)
	if !slices.Equal(diff.DeletedSeqs, []int64{30}) {
		t.Errorf("the phone may hold 30 again and is told to drop %v", diff.DeletedSeqs)
	}
}

func TestL11RestoredStore(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, channel := s.as(2), s.group(1, 2)
	phone := s.as(1).on("phone")
	b.sends(channel, 90)
	restore := backUp(t, s.database)
	for i := range 10 {
		deliver(t, 2, vars{"channel": channel, "body": "after the backup", "clientId": strconv.Itoa(i)}, s)
	}
	phone.confirm(channel, vars{"seq": 90})
	held := phone.sync(channel, nil)
	expect(t, "what the phone holds", held.ToSeq, 100)
	before := phone.page("onlyUnread: false")

	restore()
	for i := range 30 {
		deliver(t, 2, vars{"channel": channel, "body": "after the restore", "clientId": strconv.Itoa(i)}, s)
	}
	expect(t, "the order", phone.orderIn(held.StoreEpoch, channel, held.cursor()).Action, "RESYNC")
	phone.refused("CONFLICT", `mutation ($device: ID!, $epoch: ID, $cursors: [DeliveryCursor!]!) {
		confirmDelivery(deviceId: $device, storeEpoch: $epoch, cursors: $cursors) { channelId } }`,
		vars{"device": phone.device, "epoch": held.StoreEpoch, "cursors": of(channel, []vars{held.cursor()})})
	answer := phone.sync(channel, held.holds())
	expect(t, "the answer", answer.Reason, "STORE_CHANGED")
	expect(t, "the newest", answer.ToSeq, 120)
	expect(t, "messages", len(answer.Messages), 120)
	expect(t, "unread", answer.Badge.Unread.Label, "99+")
	after := phone.page("onlyUnread: false")
	if after.StoreEpoch == before.StoreEpoch || after.StoreEpoch != answer.StoreEpoch {
		t.Errorf("the store epoch was %s, and is %s in the list and %s in the sync", before.StoreEpoch, after.StoreEpoch, answer.StoreEpoch)
	}
	expect(t, "the order to who has started afresh", phone.orderIn(answer.StoreEpoch, channel, answer.cursor()).Action, "NONE")
	next := phone.sync(channel, answer.holds())
	if next.Type != "ChannelDiff" || len(next.Messages) != 0 {
		t.Errorf("after it has started afresh the phone gets %+v", next)
	}
}

// backUp copies a database while servers use it, and returns what puts the copy in its place.
func backUp(t *testing.T, database string) (restore func()) {
	t.Helper()
	_, name := named(t, database)
	administer(t, database, // a server comes back as soon as it may
		"ALTER DATABASE "+name+" ALLOW_CONNECTIONS false", disconnect(name),
		"CREATE DATABASE "+name+"_backup TEMPLATE "+name, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS true")
	return func() {
		t.Helper()
		administer(t, database, "DROP DATABASE "+name+" WITH (FORCE)", "ALTER DATABASE "+name+"_backup RENAME TO "+name)
	}
}

func TestL12DeletionUnderWayDuringADiff(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"before its version is given out": "SELECT FROM channel_head WHERE channel_id = $1::text::bigint FOR UPDATE",
		"after its version is given out":  "SELECT FROM message WHERE channel_id = $1::text::bigint AND seq = 3 FOR UPDATE",
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			b, channel := s.as(2), s.group(1, 2)
			phone := s.as(1).on("phone")
			b.sends(channel, 6)
			release := hold(t, s.database, lock, channel)
			var deleting sync.WaitGroup
			deleting.Go(func() { b.delete(channel, 3) })
			awaitBlocked(t, s.database)
			held := phone.sync(channel, vars{"after": 0})
			expect(t, "messages", len(held.Messages), 6)
			expect(t, "whether it is deleted yet", held.Messages[2].Deleted, false)
			release()
			deleting.Wait()

			expect(t, "the order", phone.order(channel, held.cursor()).Action, "DIFF")
			if next := phone.sync(channel, held.holds()); !slices.Equal(next.DeletedSeqs, []int64{3}) {
				t.Errorf("the next diff lists %v, want 3", next.DeletedSeqs)
			}
		})
	}
}

func TestDiffComesInPages(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, channel := s.as(2), s.group(1, 2)
	phone := s.as(1).on("phone")
	b.sends(channel, 25)
	held := vars{"after": 0, "limit": 10}
	for page, last := range []int64{10, 20, 25} {
		diff := phone.sync(channel, held)
		expect(t, "the first of the page", diff.FromSeq, int64(10*page)+1)
		expect(t, "the last of the page", diff.ToSeq, last)
		expect(t, "whether there is more", diff.HasMore, last < 25)
		held = diff.holds()
		held["limit"] = 10
	}
}

func TestGapTooLarge(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_SYNC_MAX_GAP=10")
	b, channel := s.as(2), s.group(2)
	phone := s.as(1).on("phone")
	b.sends(channel, 50)
	b.add(channel, 1)
	expect(t, "the newcomer's gap", len(phone.sync(channel, vars{"after": 0}).Messages), 0)
	b.sends(channel, 10)
	expect(t, "a gap at the limit", phone.sync(channel, vars{"after": 50}).Type, "ChannelDiff")
	expect(t, "its order", phone.order(channel, vars{"seq": 50}).Action, "DIFF")
	b.sends(channel, 1)
	answer := phone.sync(channel, vars{"after": 50, "limit": 5})
	expect(t, "a gap past it", answer.Reason, "GAP_TOO_LARGE")
	expect(t, "its order", phone.order(channel, vars{"seq": 50}).Action, "RESYNC")
	expect(t, "messages", len(answer.Messages), 5)
	expect(t, "the oldest of them", answer.Messages[0].Seq, 57)
	expect(t, "unread", answer.Badge.Unread.Count, 11)
}

func TestDevicesArePersonsOwn(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	one, other := s.as(1).on("shared laptop"), s.as(2).on("shared laptop")
	one.sends(channel, 5)
	one.confirm(channel, vars{"seq": 3}, vars{"seq": 2})
	expect(t, "what it holds for one", one.order(channel).LastDeliveredSeq, 3)
	expect(t, "what it holds for the other", other.sync(channel, nil).Reason, "NEW_DEVICE")
	one.confirm(channel, vars{"seq": 99})
	one.confirm(channel, vars{"seq": 1})
	expect(t, "the record, which never falls nor passes the newest", one.order(channel).LastDeliveredSeq, 5)
	expect(t, "unread of the other", other.badge(channel).Unread.Count, 5)

	forget := func(c client) bool {
		return ask[struct{ ForgetDevice bool }](c, `mutation ($device: ID!) { forgetDevice(deviceId: $device) }`, vars{"device": c.device}).ForgetDevice
	}
	other.confirm(channel, vars{"seq": 4})
	expect(t, "whether there was something to forget", forget(one), true)
	expect(t, "whether there is again", forget(one), false)
	expect(t, "the answer after it", one.sync(channel, nil).Reason, "NEW_DEVICE")
	expect(t, "the other's record", other.order(channel).LastDeliveredSeq, 4)
}
