package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/live"
	"tidemark/internal/wait"
)

const (
	defaultProbeEvery  = time.Second
	defaultProbeWithin = 3 * time.Second

	// publishTimeout is what a publication may take: whoever publishes does not wait for live updates.
	publishTimeout = 500 * time.Millisecond

	// minPause and maxPause bound the wait before a lost link is replaced. It doubles with each link that was not up
	// for maxPause: every new link makes its receiver look for what it has missed, which costs more than the link.
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

var _ live.Broker = (*Broker)(nil)

var (
	errLinkDown     = errors.New("the link to Redis is down")
	errUnsubscribed = errors.New("unsubscribed meanwhile")
)

// BrokerConfig says how a broker proves its link. Its zero value is good for production.
type BrokerConfig struct {
	// ProbeEvery is the time from one probe to the next. Zero means 1 second.
	ProbeEvery time.Duration
	// ProbeWithin is how long to wait for a probe before the link is given up. It has to be some times ProbeEvery, or
	// one late probe ends a good link. Zero means 3 seconds.
	ProbeWithin time.Duration
	// Logger takes a line when the link is lost and one when it is back. Nil means slog.Default.
	Logger *slog.Logger
}

// Broker is live.Broker on the pub/sub of Redis. It is safe for concurrent use.
//
// The receiver may call Unsubscribe, Publish and Up. It must not call Subscribe, which would wait for a confirmation
// that nobody reads while the receiver is busy.
type Broker struct {
	rdb    *goredis.Client // for publications and probes
	config BrokerConfig
	probe  live.Topic
	subs   *subscriptions
	lost   bool // that the link is down was logged; Run's alone
}

// NewBroker returns a broker whose publications go through c. Until Run is called its link is down.
func NewBroker(c *Client, config BrokerConfig) *Broker {
	config.ProbeEvery = cmp.Or(config.ProbeEvery, defaultProbeEvery)
	config.ProbeWithin = cmp.Or(config.ProbeWithin, defaultProbeWithin)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	b := &Broker{
		rdb:    c.single,
		config: config,
		probe:  live.Topic("probe:{" + rand.Text() + "}"),
		subs:   newSubscriptions(),
	}
	_, _ = b.subs.want(b.probe)
	return b
}

// Run is as live.Broker has it.
func (b *Broker) Run(ctx context.Context, receiver live.Receiver) error {
	pause := minPause
	for ctx.Err() == nil {
		if b.runLink(ctx, receiver) >= maxPause {
			pause = minPause
		}
		// Not all processes at once: they lost their links together.
		jittered := pause/2 + mathrand.N(pause/2) //nolint:gosec // when to try again is no secret
		wait.For(ctx, jittered)
		pause = min(2*pause, maxPause)
	}
	return nil
}

// Subscribe is as live.Broker has it. Where the link is down, or goes down while Subscribe waits, it returns an error.
// So it does where a topic is unsubscribed meanwhile.
func (b *Broker) Subscribe(ctx context.Context, topics ...live.Topic) error {
	w, err := b.subs.want(topics...)
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	select {
	case err = <-w.done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

// Unsubscribe is as live.Broker has it. A publication that is being handed over may still come.
func (b *Broker) Unsubscribe(topics ...live.Topic) { b.subs.drop(topics...) }

// Publish is as live.Broker has it. It takes half a second at most, and no time where the link is known to be down.
func (b *Broker) Publish(ctx context.Context, publications ...live.Publication) error {
	if !b.Up() {
		return fmt.Errorf("publish: %w", errLinkDown)
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	pipe := b.rdb.Pipeline()
	for _, p := range publications {
		pipe.Publish(ctx, string(p.Topic), p.Payload)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// Up is as live.Broker has it.
func (b *Broker) Up() bool { return b.subs.isUp() }
