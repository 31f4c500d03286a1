package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/live"
)

// commandTopics is how many topics one SUBSCRIBE or UNSUBSCRIBE names at most.
const commandTopics = 1000

var errLinkSpent = errors.New("a link has one connection in its life")

// link is one connection to Redis that receives. It never connects twice: go-redis would do so by itself and hide
// the hole.
type link struct {
	client *goredis.Client
	pubsub *goredis.PubSub

	mu    sync.Mutex
	spent bool
	conn  net.Conn
}

func newLink(ctx context.Context, base *goredis.Options) *link {
	l := &link{}
	opts := *base
	opts.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		return l.dial(ctx, network, address, base.Dialer)
	}
	opts.MaxRetries = -1
	opts.MinIdleConns = 0
	// There is always an end to a write, whatever the URL says, and to what goes before the first command.
	opts.ReadTimeout = max(opts.ReadTimeout, ioTimeout)
	opts.WriteTimeout = max(opts.WriteTimeout, ioTimeout)
	// In RESP2 all that comes is an answer or a publication. In RESP3 go-redis peeks at each to see what it is.
	opts.Protocol = 2
	opts.PushNotificationProcessor = nil
	l.client = goredis.NewClient(&opts)
	l.pubsub = l.client.Subscribe(ctx) // connects with the first command
	return l
}

func (l *link) dial(ctx context.Context, network, address string,
	dial func(ctx context.Context, network, address string) (net.Conn, error),
) (net.Conn, error) {
	l.mu.Lock()
	spent := l.spent
	l.spent = true
	l.mu.Unlock()
	if spent {
		return nil, errLinkSpent
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil { // cut may have been called
		_ = conn.Close()
		return nil, err
	}
	l.conn = conn
	return conn, nil
}

// cut ends whatever reads or writes at once. It is for when the context of all calls has ended.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

func (l *link) close() {
	_ = l.pubsub.Close()
	_ = l.client.Close()
}

// runLink makes a link, and returns for how long it was up when it has ended.
func (b *Broker) runLink(running context.Context, receiver live.Receiver) (upFor time.Duration) {
	ctx, cancel := context.WithCancelCause(running)
	l := newLink(ctx, b.rdb.Options())
	defer l.close()

	b.subs.begin()
	var (
		tasks      sync.WaitGroup
		probing    = make(chan struct{})
		probeError error
	)
	tasks.Go(func() {
		<-ctx.Done()
		l.cut()
	})
	tasks.Go(func() { cancel(b.write(ctx, l)) })
	tasks.Go(func() { probeError = b.publishProbes(ctx, probing) })

	upFor, err := b.read(ctx, l, receiver, probing)
	b.subs.end()
	cancel(err) // whoever was the first to fail says why
	tasks.Wait()

	if running.Err() == nil && !b.lost {
		b.lost = true
		attrs := []any{"error", context.Cause(ctx)}
		if probeError != nil {
			attrs = append(attrs, "probe", probeError)
		}
		b.config.Logger.WarnContext(ctx, "the link to Redis is down: live updates wait until it is back", attrs...)
	}
	return upFor
}

// read hands over what the link brings until it fails, and marks it up. probing is closed when probes can come back.
func (b *Broker) read(ctx context.Context, l *link, receiver live.Receiver, probing chan<- struct{}) (upFor time.Duration, err error) {
	var (
		patience = b.config.ProbeWithin // what is left of it
		probed   bool
		upSince  time.Time
	)
	for {
		// Only the time in which nothing came counts. A receiver that takes long says nothing about the link.
		start := time.Now()
		reply, err := l.pubsub.ReceiveTimeout(ctx, patience)
		patience -= time.Since(start)

		switch reply := reply.(type) {
		case *goredis.Subscription:
			topic := live.Topic(reply.Channel)
			err = b.subs.answered(topic)
			if !probed { // many topics take their time
				patience = b.config.ProbeWithin
			}
			if topic == b.probe && err == nil {
				close(probing)
			}
		case *goredis.Message:
			topic := live.Topic(reply.Channel)
			if topic == b.probe {
				patience, probed = b.config.ProbeWithin, true
			} else if b.subs.wants(topic) {
				receiver.Received(live.Publication{Topic: topic, Payload: []byte(reply.Payload)})
			}
		}

		switch {
		case patience <= 0:
			err = fmt.Errorf("no probe came back within %v", b.config.ProbeWithin)
		case err == nil && upSince.IsZero() && probed && b.subs.resume():
			upSince = time.Now()
			if b.lost {
				b.lost = false
				b.config.Logger.InfoContext(ctx, "the link to Redis is back")
			}
			receiver.Resumed()
		}
		if err != nil {
			if !upSince.IsZero() {
				upFor = time.Since(upSince)
			}
			return upFor, err
		}
	}
}

// write asks the link for what is wanted until the link fails.
func (b *Broker) write(ctx context.Context, l *link) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.subs.wake:
		}
		for {
			subscribe, unsubscribe := b.subs.next(commandTopics)
			if len(subscribe)+len(unsubscribe) == 0 {
				break
			}
			if len(subscribe) > 0 {
				if err := l.pubsub.Subscribe(ctx, subscribe...); err != nil {
					return err
				}
			}
			if len(unsubscribe) > 0 {
				if err := l.pubsub.Unsubscribe(ctx, unsubscribe...); err != nil {
					return err
				}
			}
		}
	}
}

// publishProbes publishes probes from when they can come back until the context ends. It returns what was wrong with
// the last one.
func (b *Broker) publishProbes(ctx context.Context, probing <-chan struct{}) (last error) {
	select {
	case <-ctx.Done():
		return nil
	case <-probing:
	}
	for {
		err := b.publishProbe(ctx)
		if ctx.Err() != nil {
			return last
		}
		last = err
		pause := b.config.ProbeEvery
		if err != nil { // it may have been the pool's last connection to a Redis that is no more
			pause = min(pause, minPause)
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(pause):
		}
	}
}

func (b *Broker) publishProbe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(publishTimeout, b.config.ProbeWithin))
	defer cancel()
	return b.rdb.Publish(ctx, string(b.probe), nil).Err()
}
