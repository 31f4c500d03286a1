package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/id"
)

// patience bounds the wait for what a crowd is to be told.
const patience = 30 * time.Second

// crowd is people who are in one channel, and each in another one of their own, which is numbered as they are.
type crowd struct {
	channel id.Channel
	first   id.User
	size    int
}

func (l *lab) large() crowd { return crowd{crowdChannel, firstViewer, l.crowds[0]} }

func (l *lab) small() crowd {
	return crowd{crowdChannel + 1, firstViewer + id.User(l.crowds[0]), l.crowds[1]}
}

// shared is the channel that a viewer of the crowd looks at where all look at the same.
func (c crowd) shared(int) id.Channel { return c.channel }

// own is the channel that a viewer shares with the sender alone.
func (c crowd) own(number int) id.Channel { return id.Channel(c.first) + id.Channel(number) }

// part is the people from one number of the crowd up to before another.
func (c crowd) part(from, to int) crowd {
	return crowd{channel: c.channel, first: c.first + id.User(from), size: to - from}
}

// audience is a crowd that looks at its badges.
type audience struct {
	viewers []*viewer
	readers sync.WaitGroup
	leaving atomic.Bool
	failed  chan error // the first error of a viewer
}

// gather opens the badges of a crowd, of as many people at once as Tidemark has connections to Postgres. Each looks at
// one channel; heard is called when they are told of it, on a goroutine of their own.
func (s *server) gather(ctx context.Context, c crowd, channel func(number int) id.Channel, heard func(*viewer)) (*audience, error) {
	a := &audience{viewers: make([]*viewer, c.size), failed: make(chan error, 1)}
	dialer := dialer()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for n := range a.viewers {
		group.Go(func() error {
			v, err := s.watch(ctx, dialer, c.first+id.User(n), channel(n))
			if err != nil {
				return err
			}
			v.number, a.viewers[n] = n, v
			a.readers.Go(func() { a.follow(v, heard) })
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		a.leave()
		return nil, err
	}
	return a, nil
}

func (a *audience) follow(v *viewer, heard func(*viewer)) {
	if err := v.follow(heard); !a.leaving.Load() {
		select {
		case a.failed <- err:
		default:
		}
	}
}

// await returns when all of it was told, and with an error where somebody is not.
func (a *audience) await(told <-chan struct{}) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-told:
		return nil
	case err := <-a.failed:
		return err
	case <-late.C:
		return fmt.Errorf("%w within %v", errNotTold, patience)
	}
}

// leave hangs up for everybody.
func (a *audience) leave() {
	a.leaving.Store(true)
	for _, v := range a.viewers {
		if v != nil {
			v.leave()
		}
	}
	a.readers.Wait()
}

// settle leaves a crowd alone for a while. All of it has been pinged then, for the first time.
func (l *lab) settle(ctx context.Context, a *audience) error {
	rest := time.NewTimer(l.rest)
	defer rest.Stop()
	select {
	case <-rest.C:
		return nil
	case err := <-a.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
