package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// told is what it came to that each of a crowd was told of each message.
type told struct {
	cpu  float64       // of the server for one viewer and one message, in microseconds
	late time.Duration // from the send until all but one of a hundred were told
}

// fanOuts is what one round found out about them: of the large crowd and of the small one.
type fanOuts struct{ tidemark, stock [2]told }

// fanOut measures what it costs to tell everybody of a message who looks at its channel.
func fanOut(ctx context.Context, l *lab) ([]row, error) {
	tidemark, stock, err := l.contenders(ctx)
	if err != nil {
		return nil, err
	}
	crowds := [2]crowd{l.large(), l.small()}
	found, err := measure(ctx, l, func(ctx context.Context) (r fanOuts, err error) {
		for i, crowd := range crowds {
			if r.tidemark[i], err = l.tell(ctx, tidemark, crowd); err != nil {
				return r, err
			}
			if r.stock[i], err = l.tell(ctx, stock, crowd); err != nil {
				return r, err
			}
		}
		return r, nil
	})
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, crowd := range crowds {
		who := short(crowd.size) + " subscribers: "
		rows = append(
			rows,
			found.row(who+"CPU for a delivery, stock gqlgen / Tidemark", "%.2f", atLeast(2), func(r fanOuts) float64 { return r.stock[i].cpu / r.tidemark[i].cpu }).onTime(),
			found.row(who+"CPU for a delivery", "%.1f µs", bound{}, func(r fanOuts) float64 { return r.tidemark[i].cpu }).onTime(),
			found.row(who+"CPU for a delivery, stock gqlgen", "%.1f µs", bound{}, func(r fanOuts) float64 { return r.stock[i].cpu }).onTime(),
			found.row(who+"99 of 100 are told within", "%.0f ms", bound{}, func(r fanOuts) float64 { return milliseconds(r.tidemark[i].late) }).onTime(),
			found.row(who+"99 of 100 are told within, stock gqlgen", "%.0f ms", bound{}, func(r fanOuts) float64 { return milliseconds(r.stock[i].late) }).onTime(),
		)
	}
	return rows, nil
}

// tell sends message after message to a crowd, each when everybody has heard of the one before it.
func (l *lab) tell(ctx context.Context, c contender, crowd crowd) (r told, err error) {
	var missing atomic.Int64
	var sent atomic.Pointer[time.Time]
	everybody := make(chan struct{}, 1)
	took := make([][]time.Duration, crowd.size)
	heard := func(v *viewer) {
		took[v.number] = append(took[v.number], time.Since(*sent.Load()))
		if missing.Add(-1) == 0 {
			everybody <- struct{}{}
		}
	}
	err = c.serving(ctx, func(s *server) error {
		audience, err := s.gather(ctx, crowd, crowd.shared, heard)
		if err != nil {
			return err
		}
		defer audience.leave()
		if err := l.settle(ctx, audience); err != nil {
			return err
		}
		sender, err := s.sending(ctx, crowd.channel)
		if err != nil {
			return err
		}
		defer sender.conn.Close()
		messages := l.deliveries / crowd.size
		warm := messages/5 + 1 // are not counted
		var before, after vitals
		for n := range warm + messages {
			if n == warm {
				if before, err = s.vitals(ctx); err != nil {
					return err
				}
			}
			missing.Store(int64(crowd.size))
			now := time.Now()
			sent.Store(&now)
			if _, err := sender.ask(); err != nil {
				return err
			}
			if err := audience.await(everybody); err != nil {
				return err
			}
		}
		if after, err = s.vitals(ctx); err != nil {
			return err
		}
		r.cpu = 1e6 * (after.cpu - before.cpu) / float64(messages*crowd.size)
		var all []time.Duration
		for _, each := range took {
			all = append(all, each[warm:]...)
		}
		r.late = percentile(all, 99)
		return nil
	})
	return r, err
}

// percentile returns what so many of a hundred are not more than. It sorts them.
func percentile(times []time.Duration, of int) time.Duration {
	slices.Sort(times)
	return times[(len(times)-1)*of/100]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
