package e2e_test

import (
	"testing"
	"time"

	"tidemark/internal/id"
)

func TestD01OwnMessagesAreNotUnread(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	a.sends(channel, 3)
	b.sends(channel, 2)
	expect(t, "unread", a.badge(channel).Unread.Count, 2)
	expect(t, "the sender's", b.badge(channel).Unread.Count, 0)

	// After a mark unread one's own messages lie in the gap, and are still not counted.
	a.markUnread(channel, 1)
	marked := a.badge(channel)
	expect(t, "unread", marked.Unread.Count, 2)
	expect(t, "the bound", marked.UnreadUpperBound, 5)
	b.markUnread(channel, 1)
	expect(t, "the other's", b.badge(channel).Unread.Count, 3)
}

func TestD02ReplyOnThePhoneClearsTheWeb(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	web, phone := s.as(1), s.as(1)
	s.as(2).sends(channel, 3)
	expect(t, "unread on the web", web.badge(channel).Unread.Count, 3)
	phone.send(channel, "on my way")
	within(t, time.Second, "0 on the web", func() bool {
		return web.glance(channel).Unread.Count == 0
	})
	expect(t, "the total on the web", web.total().Unread.Count, 0)
}

func TestD03OwnMessagesRaiseNoBadgeElsewhere(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	laptop, phone := s.as(1), s.as(1)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		laptop.sends(channel, 50)
	}()
	for looking := true; looking; {
		select {
		case <-sent:
			looking = false
		default:
		}
		if b := phone.glance(channel); b.UnreadUpperBound != 0 || b.Unread.Count != 0 {
			t.Errorf("the phone has %d unread, bound %d", b.Unread.Count, b.UnreadUpperBound)
		}
	}
	expect(t, "unread", phone.badge(channel).Unread.Count, 0)
}

func TestD04ReadOnOneDeviceShowsOnTheOther(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	one, two := s.as(1).on("one"), s.as(1).on("two")
	s.as(2).sends(channel, 3)
	expect(t, "unread", one.badge(channel).Unread.Count, 3)
	two.markRead(channel, 3)
	within(t, time.Second, "0 on the other device", func() bool {
		return one.glance(channel).Unread.Count == 0
	})
	expect(t, "unread", one.badge(channel).Unread.Count, 0)
}

func TestD05NewDevice(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	old, fresh := s.as(1).on("old"), s.as(1).on("new")
	s.as(2).sends(channel, 7)
	old.markRead(channel, 3)
	old.confirm(channel, vars{"seq": 7})

	answer := fresh.sync(channel, nil)
	expect(t, "the answer", answer.Reason, "NEW_DEVICE")
	expect(t, "messages", len(answer.Messages), 7)
	expect(t, "unread", answer.Badge.Unread.Count, 4)
	expect(t, "unread on the old device", old.badge(channel).Unread.Count, 4)
	expect(t, "the order for all channels", fresh.order(channel).Action, "RESYNC")
}

func TestD06SendAnswersWithTheCursor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 3)
	sent := a.send(channel, "hello")
	expect(t, "the cursor", sent.Badge.LastReadSeq, sent.Message.Seq)
	expect(t, "unread", sent.Badge.Unread.Count, 0)
	expect(t, "the badge after it", a.badge(channel), sent.Badge)

	// So it is after a mark unread, which the next send undoes.
	a.markUnread(channel, 1)
	next := a.send(channel, "and again")
	expect(t, "the cursor", next.Badge.LastReadSeq, next.Message.Seq)
	expect(t, "the badge after it", a.badge(channel), next.Badge)
}

func TestD07SendTwice(t *testing.T) {
	t.Parallel()
	s := serve(t)
	sendTwice(t, s, s)
}

// sendTwice sends the same message twice, one after the other and at the same time, each through a server.
func sendTwice(t *testing.T, here, there *server) {
	t.Helper()
	channel := here.group(1, 2, 3)
	senders := []client{here.as(1), there.as(1)}
	others := []client{here.as(2), there.as(3)}

	for round := range 100 {
		variables := vars{"channel": channel, "body": "hello", "clientId": id.Message(round).String()}
		var answers [2]sent
		send := func(i int) { answers[i] = senders[i].sendAs(variables) }
		if round%2 == 0 {
			send(0)
			send(1)
		} else {
			together(func() { send(0) }, func() { send(1) })
		}
		if answers[0].Duplicate == answers[1].Duplicate {
			t.Errorf("round %d: it is not one of the two that is told to be first", round)
		}
		expect(t, "the message", answers[1].Message.ID, answers[0].Message.ID)
		expect(t, "its seq", answers[0].Message.Seq, int64(round)+1)
		expect(t, "the other's seq", answers[1].Message.Seq, int64(round)+1)
		for _, other := range others {
			expect(t, "unread", other.glance(channel).UnreadUpperBound, round+1)
		}
	}
	expect(t, "messages", len(senders[0].messages(channel, 500)), 100)
	for _, m := range others[0].messages(channel, 500) {
		if m.ClientMessageID != nil {
			t.Errorf("others are shown what the sender calls message %d", m.Seq)
		}
	}
}

func TestD07ClientMessageIDIsTheSendersInTheChannel(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	channel, other := s.group(1, 2), s.group(1, 2)
	named := func(channel, body string) vars { return vars{"channel": channel, "body": body, "clientId": "x"} }
	first := a.sendAs(named(channel, "hello"))

	for what, sent := range map[string]sent{
		"another sender's":   b.sendAs(named(channel, "hello")),
		"of another channel": a.sendAs(named(other, "hello")),
	} {
		if sent.Duplicate || sent.Message.ID == first.Message.ID {
			t.Errorf("one %s is taken for the first: %+v", what, sent.Message)
		}
	}
	before := contents(t, s.database)
	a.refused("CONFLICT", sendMessage, named(channel, "another body"))
	unchanged(t, s.database, before)

	a.delete(channel, first.Message.Seq)
	again := a.sendAs(named(channel, "hello"))
	if !again.Duplicate || again.Message.Seq != first.Message.Seq || !again.Message.Deleted || again.Message.Body != "" {
		t.Errorf("the retry of a deleted message is answered with %+v", again)
	}
	expect(t, "messages", a.badge(channel).HighWaterSeq, 2)
}

func TestD07RetryAfterLeaving(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	variables := vars{"channel": channel, "body": "hello", "clientId": "x"}
	a.sendAs(variables)
	a.remove(channel, 1)
	a.refused("NOT_FOUND", sendMessage, variables)
}
