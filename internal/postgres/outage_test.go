package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
)

const (
	// deadline is what a caller gives a call.
	deadline = 10 * time.Second
	// slack is what a call may take beyond that to come back.
	slack = 5 * time.Second
)

// name is what a client calls a message of its own.
type name struct {
	sender   id.User
	clientID string
}

// Postgres is killed while people send, again and again. Each tries a message until it is answered, and then it is
// there, once.
func TestSendsOutliveAKilledPostgres(t *testing.T) {
	t.Parallel()
	const senders, each, kills = 6, 150, 3
	server := pgtest.NewServer(t)
	d := openDomain(t, postgres.Config{URL: server.URL()})
	const reader id.User = senders + 1
	people := make([]id.User, senders)
	for i := range people {
		people[i] = id.User(i + 1)
	}
	group := d.group(reader, people...)

	var (
		down     sync.RWMutex // is held while it is
		mu       sync.Mutex
		answered = make(map[name]id.Seq)
		progress = make(chan struct{}, senders*each)
	)
	sending, failed := errgroup.WithContext(t.Context())
	for _, sender := range people {
		sending.Go(func() error {
			for n := range each {
				message := name{sender, fmt.Sprint("message ", n)}
				err := d.untilAnswered(&down, func(ctx context.Context) error {
					sent, err := d.trySend(ctx, sender, group, message.clientID)
					mu.Lock()
					defer mu.Unlock()
					answered[message] = sent.Message.Seq
					return err
				})
				if err != nil {
					return err
				}
				progress <- struct{}{}
			}
			return nil
		})
	}
	for range kills {
		for range senders * each / (kills + 1) {
			select {
			case <-progress:
			case <-failed.Done():
			}
		}
		down.Lock()
		server.Kill()
		d.wantAllUnavailable(group)
		server.Start()
		down.Unlock()
	}
	if err := sending.Wait(); err != nil {
		t.Fatal(err)
	}

	const sent = senders * each
	messages, err := d.store.MessagesAfter(t.Context(), group, 0, id.MaxSeq, sent+1)
	if err != nil || len(messages) != sent {
		t.Fatalf("%d messages, %v; want %d", len(messages), err, sent)
	}
	last := make(map[id.User]id.Seq)
	for i, message := range messages {
		told := name{message.Sender.ID, *message.ClientMessageID}
		if message.Seq != id.Seq(i+1) || answered[told] != message.Seq {
			t.Errorf("message %d stands at %d, and its sender was told %d", i+1, message.Seq, answered[told])
		}
		last[message.Sender.ID] = message.Seq
	}
	for _, who := range append(people, reader) {
		badge := d.badge(who, group)
		if badge.HighWaterSeq != sent || badge.LastReadSeq != last[who] || badge.Countable != sent-int(last[who]) {
			t.Errorf("person %d, who sent up to %d, has %+v", who, last[who], badge)
		}
	}
}

// untilAnswered makes a call, and again after each failure, for which there must be one reason and no long wait.
func (d *domain) untilAnswered(down *sync.RWMutex, call func(context.Context) error) error {
	for {
		err := d.timed(call)
		if err == nil {
			return nil
		}
		if code := fault.CodeOf(err); code != fault.Unavailable {
			return fmt.Errorf("%s: %w", code, err)
		}
		down.RLock()
		down.RUnlock() //nolint:staticcheck // to wait is all
	}
}

// timed makes a call with a deadline, and fails the test where it is late.
func (d *domain) timed(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(d.t.Context(), deadline)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	if took := time.Since(began); took > deadline+slack {
		d.t.Errorf("a call with a deadline of %v takes %v: %v", deadline, took, err)
	}
	return err
}

// wantAllUnavailable makes every kind of call while Postgres is away.
func (d *domain) wantAllUnavailable(group id.Channel) {
	d.t.Helper()
	cursor := readstate.Cursor{ChannelID: group, UpToSeq: 1}
	for what, call := range map[string]func(context.Context) error{
		"send":          func(ctx context.Context) error { _, err := d.trySend(ctx, anna, group, ""); return err },
		"send, by name": func(ctx context.Context) error { _, err := d.trySend(ctx, anna, group, "one"); return err },
		"mark read": func(ctx context.Context) error {
			_, err := d.readStates.MarkRead(ctx, anna, "", cursor, readstate.DefaultCap)
			return err
		},
		"mark unread": func(ctx context.Context) error {
			_, err := d.readStates.MarkUnread(ctx, anna, group, 1, nil, readstate.DefaultCap)
			return err
		},
		"total": func(ctx context.Context) error {
			_, err := d.readStates.Total(ctx, anna, readstate.DefaultCap)
			return err
		},
		"sync device": func(ctx context.Context) error {
			_, err := d.deliveries.SyncDevice(ctx, anna, delivery.DeviceRequest{DeviceID: "phone", First: 1})
			return err
		},
		"confirm": func(ctx context.Context) error {
			_, err := d.deliveries.Confirm(ctx, anna, "phone", nil, []delivery.Confirmed{{ChannelID: group, Seq: 1}})
			return err
		},
		"keep a person": func(ctx context.Context) error { return d.store.KeepPerson(ctx, anna, "Anna") },
	} {
		if err := d.timed(call); fault.CodeOf(err) != fault.Unavailable {
			d.t.Errorf("%s, while Postgres is away: %v", what, err)
		}
	}
}

// A call that cannot have its lock in time, or runs too long, is unavailable. Where it was the caller who gave up, it may
// still be done after that; tried again, it is done once.
func TestABusyPostgresIsUnavailable(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	d := openDomain(t, postgres.Config{URL: at})
	group := d.group(anna, ben)
	conn := d.conn()
	exec(t, conn, "BEGIN")
	exec(t, conn, "SELECT FROM channel_head FOR UPDATE")
	for what, config := range map[string]postgres.Config{
		"lock":      {URL: at, LockTimeout: time.Millisecond},
		"statement": {URL: at, StatementTimeout: 20 * time.Millisecond},
	} {
		if _, err := openDomain(t, config).trySend(t.Context(), anna, group, what); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s timeout: %v", what, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := d.trySend(ctx, anna, group, "caller")
	wantCode(t, err, fault.Unavailable)
	exec(t, conn, "ROLLBACK")

	if sent, err := d.trySend(t.Context(), anna, group, "caller"); err != nil || sent.Message.Seq != 1 {
		t.Errorf("%+v, %v", sent, err)
	}
	if badge := d.badge(ben, group); badge.HighWaterSeq != 1 {
		t.Errorf("head %d, want 1", badge.HighWaterSeq)
	}
}
