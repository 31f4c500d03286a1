package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
	"tidemark/internal/redis"
)

// lightLoad is the time from one message to the next.
const lightLoad = time.Millisecond

// passage is what one round found out about messages on their way from one process to a viewer at another.
type passage struct {
	pace
	half, most time.Duration // that 50 of 100 took at the most, and 99
}

// publishing measures how long it takes from a message that is committed and published by one process until it shows in
// a badge that a viewer looks at by way of another.
func publishing(ctx context.Context, l *lab) ([]row, error) {
	tidemark, _, err := l.contenders(ctx)
	if err != nil {
		return nil, err
	}
	found, err := measure(ctx, l, func(ctx context.Context) (passage, error) { return l.passage(ctx, tidemark) })
	if err != nil {
		return nil, err
	}
	const what = "publication to websocket, one subscriber each: "
	return []row{
		found.row(what+"messages a second", "%.0f", bound{}, func(p passage) float64 { return p.perSecond() }).onTime(),
		found.row(what+"median (aim: 1 ms)", "%.2f ms", bound{}, func(p passage) float64 { return milliseconds(p.half) }).onTime(),
		found.row(what+"99 of 100 within (aim: 5 ms)", "%.2f ms", bound{}, func(p passage) float64 { return milliseconds(p.most) }).onTime(),
	}, nil
}

// passage sends messages to the channels of a crowd, each of which one viewer looks at.
func (l *lab) passage(ctx context.Context, c contender) (p passage, err error) {
	crowd := l.small()
	published := make([]atomic.Int64, crowd.size) // when each viewer's message was, in nanoseconds since the start
	took := make([][]time.Duration, crowd.size)
	start := time.Now()
	everybody := make(chan struct{}, 1)
	var missing atomic.Int64
	heard := func(v *viewer) {
		took[v.number] = append(took[v.number], time.Since(start)-time.Duration(published[v.number].Load()))
		if missing.Add(-1) == 0 {
			everybody <- struct{}{}
		}
	}
	err = c.serving(ctx, func(s *server) error {
		audience, err := s.gather(ctx, crowd, crowd.own, heard)
		if err != nil {
			return err
		}
		defer audience.leave()
		return l.publisher(ctx, func(to channel.Announcer) channel.Announcer {
			return stamp{to, func(channelID id.Channel) {
				published[channelID-crowd.own(0)].Store(int64(time.Since(start)))
			}}
		}, func(channels *channel.Channels) error {
			if err := l.settle(ctx, audience); err != nil {
				return err
			}
			messages := int(l.window / lightLoad)
			missing.Store(int64(messages))
			if p.pace, err = steadily(ctx, messages, func(ctx context.Context, n int) error {
				_, err := channels.Send(ctx, person.Viewer{ID: crowdSender, Role: person.RoleUser}, channel.Draft{
					ChannelID: crowd.own(n % crowd.size), Body: "As long as people write when they chat.",
				}, readstate.DefaultCap)
				return err
			}); err != nil {
				return err
			}
			if err := audience.await(everybody); err != nil {
				return err
			}
			var all []time.Duration
			for _, each := range took {
				all = append(all, each...)
			}
			p.half, p.most = percentile(all, 50), percentile(all, 99)
			return nil
		})
	})
	return p, err
}

// publisher has something done with channels whose messages are published by this process, once others hear of them.
func (l *lab) publisher(ctx context.Context, watched func(channel.Announcer) channel.Announcer, do func(*channel.Channels) error) (err error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: connections})
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := redis.Open(l.redis.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	quiet := slog.New(slog.DiscardHandler)
	past := delivery.New(store, readstate.New(store, nil), delivery.DefaultMaxGap)
	hub := live.NewHub(store, past, redis.NewBroker(client, redis.BrokerConfig{Logger: quiet}), live.Config{Logger: quiet})
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(running) }()
	defer func() {
		end()
		err = errors.Join(err, <-ended)
	}()
	// It publishes for this store as soon as it knows it, which somebody who subscribes has to.
	stream, err := hub.Badges(ctx, latecomer, live.Watch{Cap: 1, ChannelIDs: []id.Channel{}})
	if err != nil {
		return err
	}
	stream.Close()
	return do(channel.NewChannels(store, readstate.New(store, hub), watched(hub)))
}

// stamp notes when a message is about to be published. Its transaction has been committed then.
type stamp struct {
	channel.Announcer
	note func(id.Channel)
}

// MessageSent implements channel.Announcer.
func (s stamp) MessageSent(message channel.Message, badge readstate.Badge) {
	s.note(message.ChannelID)
	s.Announcer.MessageSent(message, badge)
}

// steadily makes calls at the pace of lightLoad, or if they take too long, as fast as that lets it.
func steadily(ctx context.Context, calls int, call func(ctx context.Context, n int) error) (pace, error) {
	group, ctx := errgroup.WithContext(ctx)
	begin := time.Now()
	for caller := range connections {
		group.Go(func() error {
			for n := caller; n < calls; n += connections {
				if err := pauseUntil(ctx, begin.Add(time.Duration(n)*lightLoad)); err != nil {
					return err
				}
				if err := call(ctx, n); err != nil {
					return fmt.Errorf("call %d: %w", n, err)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return pace{calls: calls, took: time.Since(begin)}, err
}

func pauseUntil(ctx context.Context, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
