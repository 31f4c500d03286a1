package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
)

// maxLooked is how many rows a send may look at: of its channel, of its sender there, and for the sender's name. That
// the sender is in hundreds of channels must not matter.
const maxLooked = 10

// sends is what one round found out about sending: what a message costs in either channel, and how long it takes.
type sends struct {
	small, large cost
	took         []time.Duration // the small channel's and the large one's
}

// apart is by how much the two channels differ in something.
func (s sends) apart(what int) float64 { return math.Abs(s.large[what] - s.small[what]) }

// percentApart is the same as a share of what the small channel takes.
func (s sends) percentApart(what int) float64 { return 100 * s.apart(what) / s.small[what] }

// slowdown is how many times as long as to the small channel a send to the large one takes.
func (s sends) slowdown() float64 { return s.took[1].Seconds() / s.took[0].Seconds() }

// sendBySize compares a send to a channel of 4 with one to a channel of 50,000.
func sendBySize(ctx context.Context, l *lab) ([]row, error) {
	// After a checkpoint, the first change of a page costs a copy of it: that is done with before anything is counted.
	if _, err := l.sends(ctx); err != nil {
		return nil, err
	}
	found, err := measure(ctx, l, durable(l, l.sends))
	if err != nil {
		return nil, err
	}
	const one, both = "send to 50,000 members: ", "send to 50,000 and to 4 members, apart by: "
	return []row{
		found.row(one+"statements", "%.0f", bound{}, func(s sends) float64 { return s.large[statements] }),
		found.row(both+"statements", "%.0f", atMost(2), func(s sends) float64 { return s.apart(statements) }),
		found.row(one+"rows written", "%.2f", bound{}, func(s sends) float64 { return s.large[written] }),
		found.row(both+"rows written", "%.2f", atMost(2), func(s sends) float64 { return s.apart(written) }),
		found.row(one+"rows looked at", "%.1f", atMost(maxLooked), func(s sends) float64 { return s.large[looked] }),
		found.row(both+"rows looked at", "%.1f", atMost(2), func(s sends) float64 { return s.apart(looked) }),
		found.row(one+"pages", "%.1f", bound{}, func(s sends) float64 { return s.large[pages] }),
		found.row(both+"pages", "%.1f %%", atMost(10), func(s sends) float64 { return s.percentApart(pages) }),
		found.row(one+"WAL", "%.0f B", bound{}, func(s sends) float64 { return s.large[wal] }),
		found.row(both+"WAL", "%.1f %%", atMost(10), func(s sends) float64 { return s.percentApart(wal) }),
		found.row("send to 50,000 / to 4 members: median time", "%.2f", atMost(1.25), sends.slowdown).onTime(),
	}, nil
}

func (l *lab) sends(ctx context.Context) (s sends, err error) {
	if s.small, err = l.costOfSends(ctx, smallChannel); err != nil {
		return s, err
	}
	if s.large, err = l.costOfSends(ctx, largeChannel); err != nil {
		return s, err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: 1})
	if err != nil {
		return s, err
	}
	defer store.Close()
	channels := []id.Channel{smallChannel, largeChannel}
	s.took, err = byTurns(len(channels), l.calls, func(way, n int) error { return send(ctx, store, channels[way], n) })
	return s, err
}

func (l *lab) costOfSends(ctx context.Context, to id.Channel) (cost, error) {
	return l.costOf(ctx, l.calls, func(ctx context.Context, store *postgres.Store, n int) error {
		return send(ctx, store, to, n)
	})
}

// send sends the nth message. Of four, one names two members and one names everyone.
func send(ctx context.Context, store *postgres.Store, to id.Channel, n int) error {
	draft := channel.Draft{ChannelID: to, Body: fmt.Sprintf("Message %d, as long as people write when they chat.", n)}
	switch n % 4 {
	case 1:
		draft.Mentions = []id.User{2, 3}
	case 3:
		draft.MentionsEveryone = true
	}
	channels := channel.NewChannels(store, readstate.New(store, nil), nil)
	_, err := channels.Send(ctx, person.Viewer{ID: sender, Role: person.RoleUser}, draft, readstate.DefaultCap)
	return err
}
