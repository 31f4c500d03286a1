package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
)

const (
	// usualGap is the gap that the largest is compared with.
	usualGap = 1000
	// anyGap is larger than every gap: as the limit, it has each answered with messages from where the gap begins.
	anyGap = 2_000_000

	// page is how many messages a device asks for.
	page = 200
	// maxRows is a page, the deletions, and one row each for the state and the badge.
	maxRows = page + newDeletions + 2
	// maxSeen is how many rows may be looked at for them: each with the name of its sender, and what the badge counts.
	maxSeen = 3 * maxRows
	// maxBytes is what an answer may have with a page of such messages and the deletions, every field asked for.
	maxBytes = 64 << 10
)

// syncs is what one round found out about syncChannel, gap by gap.
type syncs struct {
	usual, largest int // where those two gaps are
	cost           []cost
	took           []time.Duration
	bytes          []int
}

// growth is how many times what the usual gap costs the largest does.
func (s syncs) growth(what int) float64 { return s.cost[s.largest][what] / s.cost[s.usual][what] }

// slowdown is the same of time.
func (s syncs) slowdown() float64 { return s.took[s.largest].Seconds() / s.took[s.usual].Seconds() }

// most is what the costliest gap costs.
func (s syncs) most(what int) float64 {
	return slices.MaxFunc(s.cost, func(a, b cost) int { return cmp.Compare(a[what], b[what]) })[what]
}

func (s syncs) mostBytes() float64 { return float64(slices.Max(s.bytes)) }

// syncByGap compares answers to devices that lack little with answers to those that lack much.
func syncByGap(ctx context.Context, l *lab) ([]row, error) {
	diffs, err := catchUp{l, anyGap}.rows(ctx, "diff")
	if err != nil {
		return nil, err
	}
	resyncs, err := catchUp{l, delivery.DefaultMaxGap}.rows(ctx, "resync")
	return append(diffs, resyncs...), err
}

// catchUp is syncChannel under one limit on gaps.
type catchUp struct {
	*lab
	maxGap int
}

// rows says which answer the largest gap gets.
func (c catchUp) rows(ctx context.Context, answer string) ([]row, error) {
	found, err := measure(ctx, c.lab, c.round)
	if err != nil {
		return nil, err
	}
	largest := fmt.Sprintf("syncChannel, gap %s answered by a %s / gap %s: ", short(slices.Max(c.gaps)), answer, short(usualGap))
	all := fmt.Sprintf("syncChannel, gaps %s to %s, at most a %s: ", short(c.gaps[0]), short(slices.Max(c.gaps)), answer)
	return []row{
		found.row(largest+"statements", "%.2f", atMost(1), func(s syncs) float64 { return s.growth(statements) }),
		found.row(largest+"pages", "%.2f", atMost(2), func(s syncs) float64 { return s.growth(pages) }),
		found.row(largest+"median time", "%.2f", atMost(2), syncs.slowdown).onTime(),
		found.row(all+"rows", "%.0f", atMost(maxRows), func(s syncs) float64 { return s.most(rows) }),
		found.row(all+"rows looked at", "%.0f", atMost(maxSeen), func(s syncs) float64 { return s.most(looked) }),
		found.row(all+"bytes of the answer", "%.0f", atMost(maxBytes), syncs.mostBytes),
	}, nil
}

func (c catchUp) round(ctx context.Context) (s syncs, err error) {
	s.usual, s.largest = slices.Index(c.gaps, usualGap), len(c.gaps)-1
	for _, gap := range c.gaps {
		cost, err := c.costOf(ctx, counted, func(ctx context.Context, store *postgres.Store, _ int) error {
			return c.sync(ctx, store, gap)
		})
		if err != nil {
			return s, err
		}
		s.cost = append(s.cost, cost)
	}

	store, err := postgres.Open(ctx, postgres.Config{URL: c.url(), MaxConnections: 1})
	if err != nil {
		return s, err
	}
	defer store.Close()
	s.took, err = byTurns(len(c.gaps), c.calls, func(way, _ int) error { return c.sync(ctx, store, c.gaps[way]) })
	if err != nil {
		return s, err
	}

	api := newAPI(store, c.maxGap)
	for _, gap := range c.gaps {
		answer, err := api.ask(ctx, latecomer, c.query(gap))
		if err != nil {
			return s, err
		}
		s.bytes = append(s.bytes, len(answer))
	}
	return s, nil
}

// sync answers a device that is so far behind, and has heard of none of the deletions. It fails where the answer is
// not what it must be.
func (c catchUp) sync(ctx context.Context, store *postgres.Store, gap int) error {
	after, heard := c.held(gap)
	answer, err := delivery.New(store, readstate.New(store, nil), c.maxGap).Sync(ctx, latecomer, delivery.Request{
		ChannelID: longChannel, DeviceID: "bench", Limit: page, Cap: readstate.DefaultCap,
		Held: delivery.Held{After: &after, SinceVersion: &heard},
	})
	if err != nil {
		return err
	}
	switch answer := answer.(type) {
	case *delivery.Diff:
		if gap > c.maxGap || answer.FromSeq != after+1 || len(answer.Messages) != min(gap, page) {
			return fmt.Errorf("a gap of %d was answered by a diff of %d messages from %d on", gap, len(answer.Messages), answer.FromSeq)
		}
	case *delivery.Resync:
		if gap <= c.maxGap || len(answer.Messages) != page {
			return fmt.Errorf("a gap of %d was answered by a resync of %d messages: %s", gap, len(answer.Messages), answer.Reason)
		}
	}
	return nil
}

// held is the newest message that the device holds, and the version up to which it has heard of deletions.
func (c catchUp) held(gap int) (after, heard id.Seq) {
	return id.Seq(c.messages() - gap), id.Seq(c.messages())
}

// query asks for the same, and for every field.
func (c catchUp) query(gap int) string {
	after, heard := c.held(gap)
	return fmt.Sprintf(`{ syncChannel(channelId: %d, deviceId: "bench", after: %d, sinceVersion: %d, limit: %d) {
		... on ChannelDiff { messages { ...whole } deletedSeqs fromSeq toSeq hasMore version storeEpoch badge { ...shown } }
		... on ChannelResync { reason maxGap messages { ...whole } toSeq version storeEpoch badge { ...shown } }
	} }
	fragment whole on Message { id channelId seq sender { id displayName } body createdAt deleted mentionsViewer clientMessageId }
	fragment shown on Badge {
		id version highWaterSeq lastReadSeq readEpoch unreadUpperBound muted unread { ...number } mentions { ...number }
	}
	fragment number on UnreadCount { count capped label }`, longChannel, after, heard, page)
}

// short is a number as people say it.
func short(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	default:
		return fmt.Sprint(n)
	}
}
