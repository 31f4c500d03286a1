package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// restlessTries bounds how many rounds are tried for each that is wanted.
const restlessTries = 3

// errRestless says that the disk's pace changed more than twofold in the course of a round.
var errRestless = errors.New("the disk was too restless")

// rounds is what each round found out.
type rounds[T any] []T

// row is a line of the report about one number of each round.
func (r rounds[T]) row(what, format string, must bound, number func(T) float64) row {
	f := make(figure, len(r))
	for i, one := range r {
		f[i] = number(one)
	}
	return row{what: what, format: format, must: must, figure: f}
}

// measure makes as many rounds as are asked for. One that the disk spoilt is made again.
func measure[T any](ctx context.Context, l *lab, round func(context.Context) (T, error)) (rounds[T], error) {
	var found rounds[T]
	for tries := 1; len(found) < l.rounds; tries++ {
		one, err := round(ctx)
		switch {
		case err == nil:
			found = append(found, one)
		case !errors.Is(err, errRestless):
			return nil, err
		case tries < restlessTries*l.rounds:
			l.say("a round does not count: %v", err)
		case len(found) == 0:
			return nil, err
		default:
			l.say("only %d of %d rounds count", len(found), l.rounds)
			return found, nil
		}
	}
	return found, nil
}

// durable makes a round of commits fail with errRestless where the disk spoilt it.
func durable[T any](l *lab, round func(context.Context) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (found T, err error) {
		before, err := syncTime(l.dir, roundProbe)
		if err != nil {
			return found, err
		}
		if found, err = round(ctx); err != nil {
			return found, err
		}
		after, err := syncTime(l.dir, roundProbe)
		if err == nil && !l.quick && restless(before, after) {
			err = errRestless
		}
		return found, err
	}
}

func restless(before, after time.Duration) bool { return after > 2*before || before > 2*after }

// pace is how many calls were made, and in how long.
type pace struct {
	calls int
	took  time.Duration
}

func (p pace) perSecond() float64 { return float64(p.calls) / p.took.Seconds() }

// inParallel lets callers call for a while: each calls again as soon as its call has ended. A call learns whose it is,
// and how many its caller has made before.
func inParallel(ctx context.Context, while time.Duration, call func(ctx context.Context, caller, n int) error) (pace, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var callers sync.WaitGroup
	var made [connections]int
	begin := time.Now()
	for caller := range made {
		callers.Go(func() {
			for ctx.Err() == nil && time.Since(begin) < while {
				if err := call(ctx, caller, made[caller]); err != nil {
					cancel(err)
					return
				}
				made[caller]++
			}
		})
	}
	callers.Wait()
	all := pace{took: time.Since(begin)}
	for _, n := range made {
		all.calls += n
	}
	return all, context.Cause(ctx)
}

// byTurns calls in several ways by turns, each so many times, and returns the median time that each took.
func byTurns(ways, times int, call func(way, n int) error) ([]time.Duration, error) {
	took := make([][]time.Duration, ways)
	for n := range times {
		for way := range took {
			begin := time.Now()
			if err := call(way, n); err != nil {
				return nil, err
			}
			took[way] = append(took[way], time.Since(begin))
		}
	}
	medians := make([]time.Duration, ways)
	for way := range took {
		medians[way] = median(took[way])
	}
	return medians, nil
}
