package replay

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// act is something that was begun. It is closed when it has been done; nil stands for nothing at all.
type act chan struct{}

// stage runs acts side by side. One that waits for others keeps no worker from working, and the others were begun
// before it, so no two wait for each other.
type stage struct {
	group *errgroup.Group
	work  chan struct{} // one place for each worker
	place string        // what the errors of acts begun now start with
}

// ahead bounds the acts that are begun and not done. It is large: most of them may wait for one busy channel.
const ahead = 4096

// newStage returns a stage on which so many acts are at work at once. The context ends with the first that fails.
func newStage(ctx context.Context, workers int) (*stage, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ahead)
	return &stage{group: group, work: make(chan struct{}, workers)}, ctx
}

// begin has do called once all that came before is done. It returns at once, or when there is a place again.
func (st *stage) begin(ctx context.Context, do func(context.Context) error, before ...act) act {
	begun, place := make(act), st.place
	st.group.Go(func() error {
		for _, earlier := range before {
			if earlier == nil {
				continue
			}
			select {
			case <-earlier:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		select {
		case st.work <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		defer func() { <-st.work }()
		if err := do(ctx); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		close(begun)
		return nil
	})
	return begun
}

// end returns when all acts are done, with the error of the first that failed. An err ends them early, and is it
// where none has failed before.
func (st *stage) end(err error) error {
	if err != nil {
		st.group.Go(func() error { return err })
	}
	return st.group.Wait()
}

// inTurn begins what must come after all that was sent in the channel, and before whatever is sent there next.
func (st *stage) inTurn(ctx context.Context, s *seat, do func(context.Context) error) {
	s.room.turn = st.begin(ctx, do, s.room.turn, s.alone)
}

// beside begins what a person does in some channels while others, and they themselves, go on there.
func (st *stage) beside(ctx context.Context, seats []*seat, do func(context.Context) error) {
	before := make([]act, 0, 2*len(seats))
	for _, s := range seats {
		before = append(before, s.room.turn, s.alone)
	}
	begun := st.begin(ctx, do, before...)
	for _, s := range seats {
		s.beside = append(s.beside, begun)
	}
}

// alone begins what must come after all that a person did in a channel, and before whatever they do there next.
func (st *stage) alone(ctx context.Context, s *seat, do func(context.Context) error) {
	s.alone = st.begin(ctx, do, append(s.beside, s.room.turn, s.alone)...)
	s.beside = nil
}

// aloneInTurn is alone and inTurn at once.
func (st *stage) aloneInTurn(ctx context.Context, s *seat, do func(context.Context) error) {
	st.alone(ctx, s, do)
	s.room.turn = s.alone
}

// together makes a call so many times at the same time.
func together(ctx context.Context, times int, call func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range times {
		group.Go(func() error { return call(ctx, i) })
	}
	return group.Wait()
}
