package e2e_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/id"
)

func TestR01DevicesRace(t *testing.T) {
	t.Parallel()
	s := serve(t)
	raceMarks(t, s, s)
}

// raceMarks has a person mark read on two devices at the same time, each through a server, and looks at every round.
func raceMarks(t *testing.T, here, there *server) {
	t.Helper()
	phone, laptop := here.as(1).on("phone"), there.as(1).on("laptop")
	channel := here.group(1, 2)
	here.as(2).sends(channel, 20)
	for round := range 1000 {
		epoch := phone.markUnread(channel, 1).Badge.ReadEpoch
		marks := []func(){
			func() { phone.markRead(channel, 5, epoch) },
			func() { laptop.markRead(channel, 9) },
		}
		if rand.N(2) == 0 {
			marks[0], marks[1] = marks[1], marks[0]
		}
		together(marks...)
		if b := phone.glance(channel); b.LastReadSeq != 9 || b.UnreadUpperBound != 11 {
			t.Fatalf("round %d: cursor %d, bound %d, want 9 and 11", round, b.LastReadSeq, b.UnreadUpperBound)
		}
	}
}

func TestR02OlderMarkChangesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 12)

	expect(t, "the first", a.markRead(channel, 9).Outcome, "ADVANCED")
	version := a.badge(channel).Version
	for _, seq := range []int64{5, 9, 0} {
		again := a.markRead(channel, seq)
		expect(t, "a later one", again.Outcome, "UNCHANGED")
		expect(t, "the cursor", again.Badge.LastReadSeq, 9)
		expect(t, "the version", again.Badge.Version, version)
	}
	many := a.markManyRead(
		vars{"channelId": channel, "upToSeq": 11}, vars{"channelId": channel, "upToSeq": 10}, vars{"channelId": channel, "upToSeq": 11})
	for i, outcome := range []string{"ADVANCED", "UNCHANGED", "UNCHANGED"} {
		expect(t, "of several at once", many[i].Outcome, outcome)
	}
	expect(t, "unread", a.badge(channel).Unread.Count, 1)
}

func TestR03WhatWasNotNamedIsNotRead(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.sends(channel, 10)
	page := a.messages(channel, 50)
	b.sends(channel, 1)
	a.markRead(channel, page[len(page)-1].Seq)
	expect(t, "unread", a.badge(channel).Unread.Count, 1)
}

func TestR04ManyMarksAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 210)
	marks := make([]func(), 200)
	for i := range marks {
		marks[i] = func() { a.markRead(channel, int64(i)+1) }
	}
	rand.Shuffle(len(marks), func(i, j int) { marks[i], marks[j] = marks[j], marks[i] })
	together(marks...)
	expect(t, "the cursor", a.badge(channel).LastReadSeq, 200)
}

func TestR05RedisIsFlushed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 100)
	a.markRead(channel, 100)
	s.flushRedis(t)

	expect(t, "the bound", a.badge(channel).UnreadUpperBound, 0)
	expect(t, "a mark", a.markRead(channel, 100).Outcome, "UNCHANGED")
	b := a.badge(channel)
	expect(t, "the head", b.HighWaterSeq, 100)
	expect(t, "the cursor", b.LastReadSeq, 100)
}

func TestR06MemoryIsBehindTheTruth(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 3)
	expect(t, "unread", a.badge(channel).Unread.Count, 3)

	move := "UPDATE channel_read_state SET last_read_seq = 3, receipt_seq = 3 WHERE user_id = 1 AND channel_id = $1::text::bigint"
	if _, err := connect(t, s.database).Exec(t.Context(), move, channel); err != nil {
		t.Fatal(err)
	}
	m := a.markRead(channel, 3)
	expect(t, "the mark", m.Outcome, "UNCHANGED")
	expect(t, "unread as it answers", m.Badge.Unread.Count, 0)
	expect(t, "unread", a.badge(channel).Unread.Count, 0)
	expect(t, "the total", a.total().Unread.Count, 0)
}

func TestR07FirstMarksOfANewcomer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	creator, channel := s.as(1), s.group(1)
	conn := connect(t, s.database)
	for user := id.User(2); user < 42; user++ {
		newcomer := s.as(user)
		together(func() { creator.add(channel, user) }, func() { creator.add(channel, user) })
		head := creator.sends(channel, 9)
		together(func() { newcomer.markRead(channel, head-4) }, func() { newcomer.markRead(channel, head) })
		expect(t, "the cursor", newcomer.badge(channel).LastReadSeq, head)
		rows := scan[int](t, conn, "SELECT count(*) FROM channel_read_state WHERE user_id = $1 AND channel_id = $2::text::bigint", user, channel)
		expect(t, "rows", rows, 1)
	}
}

func TestR08MarkPastTheNewest(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.sends(channel, 12)
	for _, seq := range []int64{int64(id.MaxSeq), 13} {
		m := a.markRead(channel, seq)
		expect(t, "the outcome", m.Outcome, "CLAMPED_TO_NEWEST")
		expect(t, "the cursor", m.Badge.LastReadSeq, 12)
	}
	many := a.markManyRead(vars{"channelId": channel, "upToSeq": id.MaxSeq})
	expect(t, "one of several", many[0].Outcome, "CLAMPED_TO_NEWEST")
	b.sends(channel, 1)
	expect(t, "unread", a.badge(channel).Unread.Count, 1)
}

func TestR09NotASeq(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 12)
	before := contents(t, s.database)
	for _, seq := range []string{"-1", "1.5", `"7"`, "9007199254740992", "true"} {
		for form, r := range map[string]reply{
			"literal":  a.do(`mutation { markRead(channelId: `+channel+`, upToSeq: `+seq+`) { outcome } }`, nil),
			"variable": a.do(markRead, vars{"channel": channel, "seq": json.RawMessage(seq)}),
		} {
			if r.code() != "BAD_USER_INPUT" || !strings.HasPrefix(r.message(), "upToSeq ") {
				t.Errorf("%s as a %s: %s", seq, form, r.body)
			}
		}
	}
	unchanged(t, s.database, before)
}

func TestR10ClientsClocksAreOff(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	clocks := []time.Duration{-time.Hour, 0, time.Hour}
	off := func(user id.User, clock time.Duration) client {
		now := time.Now().Add(clock)
		return s.bearing(signClaims(t, jwt.SigningMethodHS256, []byte(secret), jwt.MapClaims{
			"sub": user.String(), "iat": now.Unix(), "exp": now.Add(2 * time.Hour).Unix(),
		}))
	}
	for i, clock := range clocks {
		sender := off(2, clock)
		sender.sends(channel, 3)
		seq := int64(3 * (i + 1))
		for _, others := range clocks {
			expect(t, "unread", off(3, others).badge(channel).Unread.Count, int(seq))
			expect(t, "the cursor", off(1, others).markRead(channel, seq).Badge.LastReadSeq, seq)
			expect(t, "an older mark", off(1, others).markRead(channel, seq-1).Outcome, "UNCHANGED")
		}
	}
}

func TestR11OnlyWhatWasShownIsRead(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	for name, markLast := range map[string]bool{"marked after the late commit": true, "marked before it": false} {
		late, early := s.group(1, 2), s.group(1, 2)
		b.sends(late, 3)
		b.sends(early, 3)

		commit := holdHead(t, s.database, late)
		var sending sync.WaitGroup
		sending.Go(func() { b.send(late, "begun before the badges were shown") })
		awaitBlocked(t, s.database)
		var shown []vars
		for _, badge := range a.page("onlyUnread: false").Nodes {
			shown = append(shown, vars{"channelId": badge.Channel.ID, "upToSeq": badge.HighWaterSeq, "readEpoch": badge.ReadEpoch})
		}
		b.send(early, "begun after it, and there before it")
		if markLast {
			commit()
			sending.Wait()
		}
		a.markManyRead(shown...)
		if !markLast {
			commit()
			sending.Wait()
		}
		for _, channel := range []string{late, early} {
			expect(t, name+": unread", a.badge(channel).Unread.Count, 1)
		}
	}
}

func TestR12MarkFromBeforeAMarkUnread(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	phone, laptop := s.as(1).on("phone"), s.as(1).on("laptop")
	s.as(2).sends(channel, 9)
	seen := laptop.markRead(channel, 6).Badge.ReadEpoch

	back := phone.markUnread(channel, 4)
	expect(t, "the mark unread", back.Outcome, "MOVED_BACK")
	expect(t, "the late mark", laptop.markRead(channel, 9, seen).Outcome, "VOID_EPOCH")
	many := laptop.markManyRead(vars{"channelId": channel, "upToSeq": 9, "readEpoch": seen})
	expect(t, "one of several", many[0].Outcome, "VOID_EPOCH")
	b := laptop.badge(channel)
	expect(t, "the cursor", b.LastReadSeq, 3)
	expect(t, "unread", b.Unread.Count, 6)

	// Where the mark unread has nothing to move, the late mark is void all the same.
	still := phone.markUnread(channel, 8)
	expect(t, "a mark unread of what is unread", still.Outcome, "UNCHANGED")
	expect(t, "a mark from before it", laptop.markRead(channel, 9, back.Badge.ReadEpoch).Outcome, "VOID_EPOCH")
	expect(t, "a mark in the new epoch", laptop.markRead(channel, 9, still.Badge.ReadEpoch).Outcome, "ADVANCED")
}

func TestR13RetriedMarkUnread(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	phone, laptop := s.as(1).on("phone"), s.as(1).on("laptop")
	s.as(2).sends(channel, 9)
	known := phone.markRead(channel, 9).Badge.ReadEpoch

	phone.markUnread(channel, 4, known) // its answer is lost
	now := laptop.glance(channel)
	laptop.markRead(channel, 9, now.ReadEpoch)
	expect(t, "the retry", phone.markUnread(channel, 4, known).Outcome, "VOID_EPOCH")
	b := phone.badge(channel)
	expect(t, "the cursor", b.LastReadSeq, 9)
	expect(t, "the epoch", b.ReadEpoch, now.ReadEpoch)
}

func TestR14EpochFromTheFuture(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 9)
	const future = 2147483647

	m := a.markRead(channel, 5, future)
	expect(t, "a mark", m.Outcome, "ADVANCED")
	expect(t, "its epoch", m.Badge.ReadEpoch, 0)
	back := a.markUnread(channel, 3, future)
	expect(t, "a mark unread", back.Outcome, "MOVED_BACK")
	expect(t, "its epoch", back.Badge.ReadEpoch, 1)
	expect(t, "one of several", a.markManyRead(vars{"channelId": channel, "upToSeq": 4, "readEpoch": future})[0].Outcome, "ADVANCED")
	expect(t, "a mark in the old epoch", a.markRead(channel, 9, 0).Outcome, "VOID_EPOCH")
	expect(t, "a mark in the new one", a.markRead(channel, 9, 1).Outcome, "ADVANCED")
	expect(t, "unread", a.badge(channel).Unread.Count, 0)
}
