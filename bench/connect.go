package main

import "context"

// arrivals is what one round found out about people who come to look at their badges: how many microseconds of its CPU
// each server needs for one.
type arrivals struct{ tidemark, stock float64 }

func (r arrivals) ratio() float64 { return r.tidemark / r.stock }

// connecting measures what it costs to open a websocket, to sign in, to subscribe and to be told all badges.
func connecting(ctx context.Context, l *lab) ([]row, error) {
	tidemark, stock, err := l.contenders(ctx)
	if err != nil {
		return nil, err
	}
	found, err := measure(ctx, l, func(ctx context.Context) (r arrivals, err error) {
		if r.tidemark, err = l.arrive(ctx, tidemark); err != nil {
			return r, err
		}
		r.stock, err = l.arrive(ctx, stock)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	const what = "connect, sign in, subscribe, first badges: "
	return []row{
		found.row(what+"CPU, Tidemark / stock gqlgen", "%.2f", atMost(1), arrivals.ratio).onTime(),
		found.row(what+"CPU", "%.0f µs", bound{}, func(r arrivals) float64 { return r.tidemark }).onTime(),
		found.row(what+"CPU, stock gqlgen", "%.0f µs", bound{}, func(r arrivals) float64 { return r.stock }).onTime(),
	}, nil
}

func (l *lab) arrive(ctx context.Context, c contender) (cpu float64, err error) {
	crowd := l.large()
	err = c.serving(ctx, func(s *server) error {
		few, err := s.gather(ctx, crowd.part(0, fewWatchers), crowd.shared, nil)
		if err != nil {
			return err
		}
		defer few.leave()
		before, err := s.vitals(ctx)
		if err != nil {
			return err
		}
		many, err := s.gather(ctx, crowd.part(fewWatchers, fewWatchers+l.connects), crowd.shared, nil)
		if err != nil {
			return err
		}
		defer many.leave()
		after, err := s.vitals(ctx)
		cpu = 1e6 * (after.cpu - before.cpu) / float64(l.connects)
		return err
	})
	return cpu, err
}
