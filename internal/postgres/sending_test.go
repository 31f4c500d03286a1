package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
)

// Within a channel the order of seqs is the order of commits: a reader who follows by seq misses nothing.
func TestNoSeqAppearsBehindAReader(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	const senders, each = 12, 100
	people := make([]id.User, senders)
	for i := range people {
		people[i] = id.User(i + 1)
	}
	group := d.group(people[0], people...)

	var running errgroup.Group
	for _, sender := range people {
		running.Go(func() error {
			for range each {
				if _, err := d.trySend(t.Context(), sender, group, ""); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 3 {
		running.Go(func() error {
			for seen := id.Seq(0); seen < senders*each; {
				messages, err := d.store.MessagesAfter(t.Context(), group, seen, id.MaxSeq, 50)
				if err != nil {
					return err
				}
				for _, message := range messages {
					if seen++; message.Seq != seen {
						return fmt.Errorf("%d comes after %d", message.Seq, seen-1)
					}
				}
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := d.badge(people[0], group).HighWaterSeq; got != senders*each {
		t.Errorf("head %d, want %d", got, senders*each)
	}
}

func TestD07OneClientMessageIDIsOneMessage(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	for round := 1; round <= 50; round++ {
		name := fmt.Sprint("message ", round)
		var mu sync.Mutex
		fresh := 0
		var running errgroup.Group
		for range 8 {
			running.Go(func() error {
				sent, err := d.trySend(t.Context(), anna, group, name)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if !sent.Duplicate {
					fresh++
				}
				if sent.Message.Seq != id.Seq(round) || sent.Badge.LastReadSeq != id.Seq(round) || sent.Message.Body != "hello" {
					return fmt.Errorf("round %d answers with %+v", round, sent)
				}
				return nil
			})
		}
		if err := running.Wait(); err != nil {
			t.Fatal(err)
		}
		if badge := d.badge(ben, group); fresh != 1 || badge.Countable != round {
			t.Fatalf("round %d: %d fresh messages, unread %d", round, fresh, badge.Countable)
		}
	}
}

func TestAnotherBodyIsAConflict(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	if _, err := d.trySend(t.Context(), anna, group, "one"); err != nil {
		t.Fatal(err)
	}
	draft := channel.Draft{ChannelID: group, Body: "goodbye", ClientMessageID: "one"}
	_, err := d.channels.Send(t.Context(), person.Viewer{ID: anna}, draft, 1)
	wantCode(t, err, fault.Conflict)
	if sent, err := d.trySend(t.Context(), ben, group, "one"); err != nil || sent.Duplicate || sent.Message.Seq != 2 {
		t.Errorf("another sender's message of that name: %+v, %v", sent, err)
	}
}

// A client that goes away takes its send back, wherever it was, or has sent it whole.
func TestM14SendsThatFailLeaveNoTrace(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	var running errgroup.Group
	running.SetLimit(8)
	for range 400 {
		running.Go(func() error {
			patience := time.Duration(rand.Int64N(int64(4 * time.Millisecond)))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := d.trySend(ctx, anna, group, ""); err != nil && fault.CodeOf(err) != fault.Unavailable {
				return err
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	conn := d.conn()
	await(t, conn, allIsQuiet) // Postgres may still be at what its client has given up
	before := d.badge(ben, group)
	written := value[int](t, conn, "SELECT count(*) FROM message")
	if before.Countable != written || int(before.HighWaterSeq) != written {
		t.Errorf("%d messages, unread %d, head %d", written, before.Countable, before.HighWaterSeq)
	}
	if sent := d.send(anna, group); sent.Message.Seq != before.HighWaterSeq+1 {
		t.Errorf("seq %d follows %d", sent.Message.Seq, before.HighWaterSeq)
	}
	if got := d.badge(ben, group).Countable; got != before.Countable+1 {
		t.Errorf("unread %d follows %d", got, before.Countable)
	}
}

func TestWhoIsRemovedWhileTheirSendWaitsHasNotSent(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group, watch := d.group(anna, ben), d.conn()
	for _, clientID := range []string{"", "one"} {
		d.add(group, ben)
		before := d.badge(anna, group).HighWaterSeq
		failed := make(chan error, 1)
		err := d.store.LockHead(t.Context(), group, func(head channel.Head) error {
			go func() {
				_, err := d.trySend(t.Context(), ben, group, clientID)
				failed <- err
			}()
			await(t, watch, someoneWaits)
			_, err := head.Leave(t.Context(), ben)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, <-failed, fault.NotFound)
		if sent := d.send(anna, group); sent.Message.Seq != before+1 {
			t.Errorf("seq %d follows %d", sent.Message.Seq, before)
		}
	}
}

// Who joins while a send that names them waits is a member when the send's turn comes, and named.
func TestWhoJoinsWhileASendWaitsIsMentioned(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group, watch := d.group(anna), d.conn()
	d.send(anna, group)
	var running errgroup.Group
	err := d.store.LockHead(t.Context(), group, func(head channel.Head) error {
		running.Go(func() error {
			draft := channel.Draft{ChannelID: group, Body: "welcome", Mentions: []id.User{ben}}
			_, err := d.channels.Send(t.Context(), person.Viewer{ID: anna}, draft, 99)
			return err
		})
		await(t, watch, someoneWaits)
		_, err := head.Join(t.Context(), []id.User{ben})
		return err
	})
	if err := errors.Join(err, running.Wait()); err != nil {
		t.Fatal(err)
	}
	if got := d.badge(ben, group); got.Countable != 1 || got.Naming != 1 {
		t.Errorf("%d unread and %d mentions, want 1 of each", got.Countable, got.Naming)
	}
}

// Who is removed and added again meanwhile is a member when the send's turn comes.
func TestWhoComesBackWhileTheirSendWaitsHasSent(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group, watch := d.group(anna, ben), d.conn()
	d.send(anna, group)
	sent := make(chan channel.Sent, 1)
	var running errgroup.Group
	err := d.store.LockHead(t.Context(), group, func(head channel.Head) error {
		running.Go(func() error {
			s, err := d.trySend(t.Context(), ben, group, "")
			sent <- s
			return err
		})
		await(t, watch, someoneWaits)
		if _, err := head.Leave(t.Context(), ben); err != nil {
			return err
		}
		_, err := head.Join(t.Context(), []id.User{ben})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := <-sent; got.Badge != d.badge(ben, group) || got.Badge.JoinedSeq != 1 || got.Message.Seq != 2 {
		t.Errorf("sent %+v, and the badge is %+v", got, d.badge(ben, group))
	}
}

func (d *domain) add(to id.Channel, users ...id.User) {
	d.t.Helper()
	if _, err := d.channels.AddMembers(d.t.Context(), person.Viewer{Role: person.RoleService}, to, users); err != nil {
		d.t.Fatal(err)
	}
}
