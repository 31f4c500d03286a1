package newlyunread

import (
	"cmp"
	"context"
	"slices"
	"time"

	"tidemark/internal/id"
)

const (
	// DefaultRecency is how much older than it is a copy may say that a sender's latest message is.
	DefaultRecency = 30 * time.Second
	// MarkFor is how long a mark is good for: how long copies are trusted that nobody keeps right any more.
	MarkFor = 15 * time.Second
	// markEvery is how often it is renewed where nothing happens.
	markEvery = MarkFor / 3
	// checkTimeout is what a batch may lose on a check that does not answer.
	checkTimeout = 50 * time.Millisecond
)

// The copies of a partition are followed, or in doubt:
//
//	             a call failed or was left out
//	           ┌───────────────────────────────┐
//	           │                               v
//	        followed                       in doubt
//	           ^                               │
//	           └───────────────────────────────┘
//	     BeginGeneration in the store, and at once Mark
//
// Followed, they lack nothing, or no more than what is being applied. In doubt, nothing more is applied to them. The new
// generation has to begin right before its mark: a reader may make a copy of it as soon as it has begun, and whatever is
// left out after that is missing from that copy. A lease is given back only where there is no doubt; one that ends otherwise
// begins a generation when it is claimed.

// follow works a batch that was stored into the copies.
func (w *Worker) follow(ctx context.Context, s *state, done Done) {
	s.Position = done.Position
	if w.Projection == nil || s.doubtful || !w.projection.Allow() {
		s.doubtful = true // tend sees to it
		return
	}
	if err := w.apply(ctx, s, w.changes(done)); err != nil {
		w.hear(ctx, err)
		s.doubtful = true
		return
	}
	_ = w.mark(ctx, s) // the next one says the same and more
}

// apply applies what the check does not say is redundant.
func (w *Worker) apply(ctx context.Context, s *state, changes []Change) error {
	if w.Check != nil && arrivals(changes) > 0 {
		changes = w.needed(ctx, s.Partition, changes)
	}
	if len(changes) == 0 {
		return nil
	}
	applying, cancel := context.WithTimeout(ctx, projectionTimeout)
	defer cancel()
	if err := w.Projection.Apply(applying, changes); err != nil {
		return err
	}
	w.applied.Add(int64(len(changes)))
	return nil
}

func (w *Worker) needed(ctx context.Context, p Partition, changes []Change) []Change {
	if !w.check.Allow() {
		w.unsure.Add(1)
		return changes
	}
	asking, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	needed, sure, err := w.Check.Redundant(asking, p, changes, w.Recency)
	if err != nil || !sure {
		w.unsure.Add(1)
	}
	w.check.Heard(ctx, err, w.Logger, "all is written to copies: what is redundant cannot be told", "the replica tells what is redundant again")
	if err != nil {
		return changes
	}
	w.redundant.Add(int64(arrivals(changes) - arrivals(needed)))
	return needed
}

func arrivals(changes []Change) (n int) {
	for _, c := range changes {
		n += len(c.Arrived)
	}
	return n
}

// changes sorts a batch by person, in the order of their first. Coalesced, the newest of each sender is left.
func (w *Worker) changes(done Done) []Change {
	var changes []Change
	at := make(map[id.User]int)
	change := func(user id.User) *Change {
		i, there := at[user]
		if !there {
			i = len(changes)
			at[user] = i
			changes = append(changes, Change{User: user})
		}
		return &changes[i]
	}
	for _, a := range done.Acknowledged {
		change(a.User).Acknowledged = a.Position
	}
	if w.Uncoalesced {
		for _, a := range done.Arrived {
			changes = append(changes, Change{User: a.Recipient, Arrived: []Arrival{a}})
		}
		return changes
	}
	type pair struct{ recipient, sender id.User }
	newest := make(map[pair]Position, len(done.Arrived))
	for _, a := range done.Arrived {
		newest[pair{a.Recipient, a.Sender}] = a.Position // they are in the order of positions
	}
	for _, a := range done.Arrived {
		if newest[pair{a.Recipient, a.Sender}] == a.Position {
			c := change(a.Recipient)
			c.Arrived = append(c.Arrived, a)
		}
	}
	w.coalesced.Add(int64(len(done.Arrived) - len(newest)))
	return changes
}

// mark notes that a partition's copies lack nothing. One whose lease may have ended leaves that to the next owner.
func (w *Worker) mark(ctx context.Context, states ...*state) error {
	if time.Since(w.beaten) > leaseLength-beat {
		return nil
	}
	marking, cancel := context.WithTimeout(ctx, projectionTimeout)
	defer cancel()
	marks := make([]Mark, len(states))
	for i, s := range states {
		marks[i] = Mark{s.Partition, Generation{w.store, s.Generation}, s.Position}
	}
	err := w.Projection.Mark(marking, marks)
	if w.hear(ctx, err); err != nil {
		return err
	}
	for _, s := range states {
		s.marked = time.Now()
	}
	return nil
}

// settle begins a generation where a partition's copies are in doubt.
func (w *Worker) settle(ctx context.Context, s *state) error {
	if !s.doubtful {
		return nil
	}
	generation, newest, held, err := w.Queue.BeginGeneration(ctx, s.Lease)
	if err != nil {
		return err
	}
	if !held { // it is somebody else's by now, who has begun one
		delete(w.leases, s.Partition)
		return nil
	}
	w.generations.Add(1)
	s.Generation, s.Position, s.doubtful = generation, newest, false
	return nil
}

// settled returns the partitions whose copies are not in doubt, or no more.
func (w *Worker) settled(ctx context.Context) (settled []Partition) {
	for _, s := range w.leases {
		if err := w.settle(ctx, s); err != nil {
			w.Logger.Warn("copies of newly unread stay in doubt", "partition", int(s.Partition), "error", err)
			continue
		}
		if w.leases[s.Partition] != nil {
			settled = append(settled, s.Partition)
		}
	}
	return settled
}

// tend has copies followed that are in doubt, once the projection works, and renews marks.
func (w *Worker) tend(ctx context.Context) {
	if w.Projection == nil {
		return
	}
	if server := w.Projection.Server(); server != w.server && server != "" {
		// Another one may have what this one had at some time, and give it back later.
		for _, s := range w.leases {
			s.doubtful = s.doubtful || w.server != "" && s.Partition != relay
		}
		w.server = server
	}
	var old []*state
	for _, s := range w.leases {
		if s.Partition != relay && !s.doubtful && time.Since(s.marked) > markEvery {
			old = append(old, s)
		}
		if !s.doubtful || !w.projection.Allow() {
			continue
		}
		if err := w.settle(ctx, s); err != nil {
			w.Logger.Warn("copies of newly unread stay in doubt", "partition", int(s.Partition), "error", err)
			return
		}
		if !s.doubtful && w.mark(ctx, s) != nil { // it may have been done all the same
			s.doubtful = true
		}
	}
	if len(old) > 0 && w.projection.Allow() {
		slices.SortFunc(old, func(a, b *state) int { return cmp.Compare(a.Partition, b.Partition) })
		_ = w.mark(ctx, old...) // it is tried again, and where it fails for long nobody trusts what they have
	}
}

// hear remembers whether the projection works.
func (w *Worker) hear(ctx context.Context, err error) {
	w.projection.Heard(ctx, err, w.Logger, "copies of newly unread are left alone until Redis is back", "copies of newly unread are kept right again")
}
