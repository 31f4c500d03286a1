package newlyunread

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
)

const (
	// partitions are those of recipients, and the relay's.
	partitions = 64 + 1
	// relay is the partition of those who find out to whom messages count.
	relay Partition = -1

	// leaseLength is how long a worker that says nothing any more keeps what it had.
	leaseLength = 5 * time.Second
	// beat is how often it says something.
	beat = time.Second
	// lookEvery is how often a worker looks for what other processes have to be done.
	lookEvery = 100 * time.Millisecond

	relayBatch     = 200
	projectorBatch = 500
	// doubtAfter is how many attempts may fail before one is made with a single row, and parkAfter before that row is set
	// aside.
	doubtAfter, parkAfter = 3, 6
	// The pause after a failure, doubled from the least to the most.
	leastPause, mostPause = 50 * time.Millisecond, 2 * time.Second
	// batchTimeout bounds a batch.
	batchTimeout = 10 * time.Second
)

// Partition is a part of all recipients.
type Partition int16

// Lease is the right to write for a partition, as long as nobody else has a larger fence.
type Lease struct {
	Partition Partition
	Fence     int64
	Attempts  int // that failed, and may fail again
}

// Queue is the work between a send and its arrivals. Each method is one atomic step; its errors are faults, or internal.
type Queue interface {
	// KeepWorker notes that a worker lives, and returns how many have done so within a time.
	KeepWorker(ctx context.Context, worker string, within time.Duration) (living int, err error)
	// ForgetWorker gives back all that a worker has.
	ForgetWorker(ctx context.Context, worker string) error
	// RenewLeases keeps what a worker has, at most so many leases, and gives back the others. It returns those kept.
	RenewLeases(ctx context.Context, worker string, most int, length time.Duration) ([]Lease, error)
	// ClaimLeases takes free leases over, at most so many.
	ClaimLeases(ctx context.Context, worker string, most int, length time.Duration) ([]Lease, error)
	// Pending returns those of the partitions that have something to do.
	Pending(ctx context.Context, partitions []Partition) ([]Partition, error)
	// Relay writes an event for each person to whom the oldest messages count. It does nothing where the fence is old.
	Relay(ctx context.Context, fence int64, batch int) error
	// Project stores the oldest events of a partition, and returns the people whose number may be another. It does nothing
	// where the fence is old.
	Project(ctx context.Context, lease Lease, batch int) ([]id.User, error)
	// BeginAttempt counts one more attempt, and returns how many there were.
	BeginAttempt(ctx context.Context, lease Lease) (int, error)
	// Park sets aside the oldest that a partition has to do.
	Park(ctx context.Context, partition Partition) error
}

// Announcer tells whoever listens that somebody's number may be another. It neither waits nor fails.
type Announcer interface {
	NewlyUnreadChanged(users []id.User)
}

// WorkerConfig says what a worker works on. Zero stands for the defaults named.
type WorkerConfig struct {
	Queue Queue
	// Announcer hears whose number changed. Nil: nobody does.
	Announcer Announcer
	// Logger: slog.Default.
	Logger *slog.Logger
}

// Worker takes messages from the outbox to the arrivals of those to whom they count. Several share the work, and take
// over from one another within seconds.
type Worker struct {
	WorkerConfig
	name   string
	woken  chan struct{}
	leases map[Partition]Lease // Run's alone

	relayed, stored, parked atomic.Int64
}

// NewWorker returns a worker. It does nothing before Run.
func NewWorker(config WorkerConfig) *Worker {
	config.Logger = cmp.Or(config.Logger, slog.Default())
	return &Worker{WorkerConfig: config, name: rand.Text(), woken: make(chan struct{}, 1), leases: make(map[Partition]Lease)}
}

// Wake has the worker look at once, because something was sent.
func (w *Worker) Wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Run works until ctx ends, and gives back what it had.
func (w *Worker) Run(ctx context.Context) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseLength)
		defer cancel()
		if err := w.Queue.ForgetWorker(ctx, w.name); err != nil {
			w.Logger.Warn("leases are not given back, and end by themselves", "error", err)
		}
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var beaten time.Time
	pause, failing := leastPause, false
	for ctx.Err() == nil {
		err := w.work(ctx, &beaten)
		switch {
		case err == nil:
			pause, failing = leastPause, false
			select {
			case <-ctx.Done():
			case <-w.woken:
			case <-look.C:
			}
			continue
		case ctx.Err() != nil:
			continue
		case !failing:
			failing = true
			w.Logger.Warn("newly unread waits for the store", "error", err)
		}
		sleep(ctx, pause)
		pause = min(2*pause, mostPause)
	}
	return nil
}

// work keeps the leases, and does all that there is to do under them.
func (w *Worker) work(ctx context.Context, beaten *time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	if time.Since(*beaten) >= beat {
		if err := w.keepLeases(ctx); err != nil {
			clear(w.leases) // whether they still are ours is not known
			return err
		}
		*beaten = time.Now()
	}
	if len(w.leases) == 0 {
		return nil
	}
	pending, err := w.Queue.Pending(ctx, slices.Sorted(maps.Keys(w.leases)))
	if err != nil {
		return err
	}
	var failed error
	for _, partition := range pending {
		if err := w.step(ctx, w.leases[partition]); err != nil {
			failed = errors.Join(failed, w.attempt(ctx, partition, err))
		}
	}
	if len(pending) > 0 {
		w.Wake() // there may be more, of this or made by it
	}
	return failed
}

// keepLeases has as many leases as are this worker's share.
func (w *Worker) keepLeases(ctx context.Context) error {
	living, err := w.Queue.KeepWorker(ctx, w.name, leaseLength)
	if err != nil {
		return err
	}
	share := (partitions + living - 1) / living
	kept, err := w.Queue.RenewLeases(ctx, w.name, share, leaseLength)
	if err != nil {
		return err
	}
	if more := share - len(kept); more > 0 {
		claimed, err := w.Queue.ClaimLeases(ctx, w.name, more, leaseLength)
		if err != nil {
			return err
		}
		kept = append(kept, claimed...)
	}
	attempts := make(map[Partition]int, len(w.leases))
	for _, l := range w.leases {
		attempts[l.Partition] = l.Attempts
	}
	clear(w.leases)
	for _, l := range kept {
		l.Attempts = max(l.Attempts, attempts[l.Partition])
		w.leases[l.Partition] = l
	}
	return nil
}

// step does a batch.
func (w *Worker) step(ctx context.Context, lease Lease) error {
	size := projectorBatch
	if lease.Partition == relay {
		size = relayBatch
	}
	if lease.Attempts >= doubtAfter {
		size = 1
	}
	if lease.Partition == relay {
		if err := w.Queue.Relay(ctx, lease.Fence, size); err != nil {
			return err
		}
		w.relayed.Add(1)
	} else {
		changed, err := w.Queue.Project(ctx, lease, size)
		if err != nil {
			return err
		}
		w.stored.Add(int64(len(changed)))
		if w.Announcer != nil && len(changed) > 0 {
			w.Announcer.NewlyUnreadChanged(changed)
		}
	}
	lease.Attempts = 0
	w.leases[lease.Partition] = lease
	return nil
}

// attempt counts a failure that the row may be at fault for, and sets the row aside where it has failed often enough.
func (w *Worker) attempt(ctx context.Context, partition Partition, failure error) error {
	if fault.CodeOf(failure) == fault.Unavailable || ctx.Err() != nil { // nobody's fault
		return failure
	}
	lease := w.leases[partition]
	attempts, err := w.Queue.BeginAttempt(ctx, lease)
	if err != nil {
		return errors.Join(failure, err)
	}
	lease.Attempts = attempts
	if attempts >= parkAfter {
		if err := w.Queue.Park(ctx, partition); err != nil {
			return errors.Join(failure, err)
		}
		w.parked.Add(1)
		w.Logger.Error("a row was set aside: it cannot be stored", "partition", int(partition), "error", failure)
		lease.Attempts = 0
	}
	w.leases[partition] = lease
	return failure
}

// WorkerStats is what a worker has done since it was made.
type WorkerStats struct {
	Relayed int64 // batches of messages
	Stored  int64 // people whose arrivals changed, batch by batch
	Parked  int64 // rows set aside
}

// Stats tells what the worker has done.
func (w *Worker) Stats() WorkerStats {
	return WorkerStats{Relayed: w.relayed.Load(), Stored: w.stored.Load(), Parked: w.parked.Load()}
}

func sleep(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
