package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
)

// watch is what is to be known of a worker at work.
type watch struct {
	stored, told atomic.Int64 // batches: as they were stored, and after all was done with them
	tokens       atomic.Int64 // one for each check
	wrote, asked atomic.Int64 // how long that took, in nanoseconds: to apply and mark, and to check
}

// NewlyUnreadChanged implements newlyunread.Announcer.
func (w *watch) NewlyUnreadChanged([]id.User) { w.told.Add(1) }

// awaitTold returns when all was done with the batches that were stored.
func (w *watch) awaitTold(ctx context.Context) error {
	for w.told.Load() < w.stored.Load() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

func (w *watch) writing(begin time.Time) { w.wrote.Add(int64(time.Since(begin))) }

func (w *watch) asking(begin time.Time) { w.asked.Add(int64(time.Since(begin))) }

// watchedQueue counts what happens to pairs of recipient and sender. There is nothing to do while its gate is locked.
type watchedQueue struct {
	*postgres.Store
	watch   *watch
	gate    sync.Mutex
	mu      sync.Mutex
	there   map[exchange]bool
	changed int
}

func newWatchedQueue(store *postgres.Store, w *watch) *watchedQueue {
	return &watchedQueue{Store: store, watch: w, there: make(map[exchange]bool)}
}

// Pending implements newlyunread.Queue.
func (q *watchedQueue) Pending(ctx context.Context, partitions []newlyunread.Partition) ([]newlyunread.Partition, error) {
	q.gate.Lock()
	defer q.gate.Unlock()
	return q.Store.Pending(ctx, partitions)
}

// Project implements newlyunread.Queue.
func (q *watchedQueue) Project(ctx context.Context, lease newlyunread.Lease, batch int, call newlyunread.RollCall) (newlyunread.Done, error) {
	done, err := q.Store.Project(ctx, lease, batch, call)
	if err != nil || done.Taken == 0 {
		return done, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range done.Arrived {
		if e := (exchange{a.Recipient, a.Sender}); !q.there[e] {
			q.there[e] = true
			q.changed++
		}
	}
	q.watch.stored.Add(1)
	return done, nil
}

// acknowledged notes that somebody has acknowledged all that they were sent. That is one change.
func (q *watchedQueue) acknowledged(user id.User) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed++
	for e := range q.there {
		if e.recipient == user {
			delete(q.there, e)
		}
	}
}

type watchedCopies struct {
	newlyunread.Projection
	watch *watch
}

// Apply implements newlyunread.Projection.
func (c watchedCopies) Apply(ctx context.Context, changes []newlyunread.Change) error {
	defer c.watch.writing(time.Now())
	return c.Projection.Apply(ctx, changes)
}

// Mark implements newlyunread.Projection.
func (c watchedCopies) Mark(ctx context.Context, marks []newlyunread.Mark) error {
	defer c.watch.writing(time.Now())
	return c.Projection.Mark(ctx, marks)
}

type watchedCheck struct {
	newlyunread.Check
	watch *watch
}

// Redundant implements newlyunread.Check.
func (c watchedCheck) Redundant(ctx context.Context, p newlyunread.Partition, changes []newlyunread.Change, recency time.Duration) ([]newlyunread.Change, bool, error) {
	c.watch.tokens.Add(1)
	defer c.watch.asking(time.Now())
	return c.Check.Redundant(ctx, p, changes, recency)
}
