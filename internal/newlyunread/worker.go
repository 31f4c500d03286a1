package newlyunread

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"tidemark/internal/breaker"
	"tidemark/internal/id"
	"tidemark/internal/wait"
)

const (
	// leaseLength is how long a worker that says nothing any more keeps what it had.
	leaseLength = 5 * time.Second
	// beat is how often it says something.
	beat = time.Second
	// lookEvery is how often a worker looks for what other processes have to be done.
	lookEvery = 100 * time.Millisecond

	relayBatch     = 200
	projectorBatch = 500
	// doubtAfter is how many attempts may fail before rows are tried one by one, and parkAfter before one is set aside.
	doubtAfter, parkAfter = 3, 6
	// The pause after a failure, doubled from the least to the most.
	leastPause, mostPause = 50 * time.Millisecond, 2 * time.Second
	// stepTimeout bounds a batch, and each look: less than a lease is long.
	stepTimeout = 4 * time.Second
)

// Lease is the right to write for a partition, as long as nobody else has a larger fence.
type Lease struct {
	Partition Partition
	Fence     int64
	Attempts  int // that failed, and may fail again
	// Of one that was claimed: the generation of its copies, and the newest position that was given out.
	Generation int64
	Position   Position
}

// Queue is the work between a send and its arrivals. Each method is one atomic step; its errors are faults, or internal.
type Queue interface {
	// KeepWorker notes that a worker lives, and returns how many have done so within a time, and the store epoch.
	KeepWorker(ctx context.Context, worker string, within time.Duration) (living int, store string, err error)
	// ForgetWorker gives back all that a worker has. Those that are not named as settled end, as if it had died.
	ForgetWorker(ctx context.Context, worker string, settled []Partition) error
	// RenewLeases keeps what a worker has, at most so many leases, and gives back the others. Those of them that are not
	// named as settled end, as if it had died. It returns those kept.
	RenewLeases(ctx context.Context, worker string, most int, length time.Duration, settled []Partition) ([]Lease, error)
	// ClaimLeases takes free leases over, at most so many. One that ended and was not given back begins a generation.
	ClaimLeases(ctx context.Context, worker string, most int, length time.Duration) ([]Lease, error)
	// Pending returns those of the partitions that have something to do.
	Pending(ctx context.Context, partitions []Partition) ([]Partition, error)
	// Relay writes an event for each person to whom the oldest messages count. Where the fence is old it does nothing.
	Relay(ctx context.Context, lease Lease, batch int) (Done, error)
	// Recipients returns to whom the messages among a partition's oldest events are.
	Recipients(ctx context.Context, partition Partition, batch int) ([]id.User, error)
	// Project stores the oldest events of a partition, those left out that the call says. Where the fence is old it does
	// nothing.
	Project(ctx context.Context, lease Lease, batch int, call RollCall) (Done, error)
	// BeginAttempt counts one more attempt, and returns how many there were.
	BeginAttempt(ctx context.Context, lease Lease) (int, error)
	// BeginGeneration makes all copies of a partition old. Where the fence is old it does nothing, and held is false.
	BeginGeneration(ctx context.Context, lease Lease) (generation int64, newest Position, held bool, err error)
	// Park sets aside the oldest that a partition has to do. Where the fence is old it does nothing.
	Park(ctx context.Context, lease Lease) error
}

// Done is what became of a batch.
type Done struct {
	Held  bool // the lease still is the worker's
	Taken int  // rows
	// Of a projector: what arrived, in the order of positions, up to where those who acknowledged something have been shown
	// everything, and the newest position that was given out.
	Arrived      []Arrival
	Acknowledged []Acknowledgment
	Position     Position
}

// Changed returns those whose number may be another, in the order of their ids.
func (d Done) Changed() []id.User {
	users := make([]id.User, 0, len(d.Arrived)+len(d.Acknowledged))
	for _, a := range d.Arrived {
		users = append(users, a.Recipient)
	}
	for _, a := range d.Acknowledged {
		users = append(users, a.User)
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// Arrival is that a message has arrived with somebody to whom it counts.
type Arrival struct {
	Recipient, Sender id.User
	Position          Position
}

// Acknowledgment is up to where somebody has been shown everything.
type Acknowledgment struct {
	User     id.User
	Position Position
}

// ErrUnfit says that a row cannot be stored because of what it holds.
var ErrUnfit = errors.New("a row does not fit")

// Announcer tells whoever listens that somebody's number may be another. It neither waits nor fails.
type Announcer interface {
	NewlyUnreadChanged(users []id.User)
}

// WorkerConfig says what a worker works on. Zero stands for the defaults named.
type WorkerConfig struct {
	Queue Queue
	// Projection is kept right. Nil: there is none.
	Projection Projection
	// Check is asked what need not be written to the projection. Nil: all is.
	Check Check
	// Recency is how much older than it is a copy may say that a sender's latest message is, so that there is less to
	// write: DefaultRecency.
	Recency time.Duration
	// Uncoalesced has each message applied for itself, and not the newest of each sender in a batch.
	Uncoalesced bool
	// Announcer hears whose number changed. Nil: nobody does.
	Announcer Announcer
	// Presence says to whom messages do not count because they are connected when it arrives. Nil: to nobody.
	Presence Presence
	// Logger: slog.Default.
	Logger *slog.Logger
}

// Worker takes messages from the outbox to the arrivals of those to whom they count. Several share the work, and take
// over from one another within seconds.
type Worker struct {
	WorkerConfig
	name  string
	woken chan struct{}
	// Run's alone.
	leases map[Partition]*state
	beaten time.Time // when the leases were kept last
	store  string    // the store epoch then
	server string    // of the projection, when it was looked at last

	projection, check *breaker.Breaker

	relayed, stored, parked      atomic.Int64
	coalesced, redundant, unsure atomic.Int64
	applied, generations         atomic.Int64
}

// NewWorker returns a worker. It does nothing before Run.
func NewWorker(config WorkerConfig) *Worker {
	config.Logger = cmp.Or(config.Logger, slog.Default())
	config.Recency = cmp.Or(config.Recency, DefaultRecency)
	return &Worker{
		WorkerConfig: config,
		name:         rand.Text(), woken: make(chan struct{}, 1), leases: make(map[Partition]*state),
		projection: breaker.New(projectionPause), check: breaker.New(projectionPause),
	}
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
		if err := w.Queue.ForgetWorker(ctx, w.name, w.settled(ctx)); err != nil {
			w.Logger.Warn("leases are not given back, and end by themselves", "error", err)
		}
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	pause, failing := leastPause, false
	for ctx.Err() == nil {
		err := w.work(ctx)
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
		wait.For(ctx, pause)
		pause = min(2*pause, mostPause)
	}
	return nil
}

// work does all that there is to do under the worker's leases. One partition's failure is its own: it pauses, and the
// others go on. A step that has begun comes to its end: cut off, it would not be known whether it was done.
func (w *Worker) work(ending context.Context) error {
	ctx := context.WithoutCancel(ending)
	if err := w.keepLeases(ctx); err != nil {
		return err
	}
	w.tend(ctx)
	now := time.Now()
	var mine []Partition
	for p, state := range w.leases {
		if now.After(state.resume) {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	slices.Sort(mine)
	looking, cancel := context.WithTimeout(ctx, stepTimeout)
	pending, err := w.Queue.Pending(looking, mine)
	cancel()
	if err != nil {
		return err
	}
	for i := 0; i < len(pending) && ending.Err() == nil; i++ {
		partition := pending[i]
		if err := w.keepLeases(ctx); err != nil {
			return err
		}
		if state := w.leases[partition]; state != nil {
			w.step(ctx, state)
		}
	}
	return nil
}

func mostRows(p Partition) int {
	if p == relay {
		return relayBatch
	}
	return projectorBatch
}

// step does a batch, smaller ones where larger ones failed.
func (w *Worker) step(ctx context.Context, s *state) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if s.Attempts >= doubtAfter { // row by row, and each attempt is counted before it is made
		s.size = 1
		if w.setAside(ctx, s) {
			return
		}
	}
	do := w.project
	if s.Partition == relay {
		do = w.Queue.Relay
	}
	done, err := do(ctx, s.Lease, s.size)
	switch {
	case err != nil:
		// Unless Postgres has refused it, the batch may have been stored all the same.
		s.doubtful = s.doubtful || s.Partition != relay && !errors.Is(err, ErrUnfit)
		w.failed(ctx, s, err)
		return
	case !done.Held:
		delete(w.leases, s.Partition)
		return
	}
	s.Attempts, s.pause, s.resume = 0, 0, time.Time{}
	s.size = min(2*s.size, mostRows(s.Partition))
	if done.Taken > 0 {
		w.Wake() // there may be more, of this or made by it
	}
	if s.Partition == relay {
		w.relayed.Add(int64(done.Taken))
		return
	}
	w.stored.Add(int64(done.Taken))
	if done.Taken == 0 {
		return
	}
	w.follow(ctx, s, done)
	if w.Announcer != nil {
		w.Announcer.NewlyUnreadChanged(done.Changed())
	}
}

// setAside counts an attempt before it is made, and sets the oldest row aside where there were enough. It reports whether
// the step is over.
func (w *Worker) setAside(ctx context.Context, s *state) bool {
	attempts, err := w.Queue.BeginAttempt(ctx, s.Lease)
	if err != nil {
		w.failed(ctx, s, err)
		return true
	}
	if s.Attempts = max(s.Attempts, attempts); s.Attempts <= parkAfter {
		return false
	}
	if err := w.Queue.Park(ctx, s.Lease); err != nil {
		w.failed(ctx, s, err)
		return true
	}
	w.parked.Add(1)
	w.Logger.Error("a row was set aside: it cannot be stored, or its worker dies of it", "partition", int(s.Partition))
	s.Attempts = 0 // the rows after it begin anew
	return true
}

// failed has a partition pause. Only where a row itself is at fault does that count against it.
func (w *Worker) failed(ctx context.Context, s *state, err error) {
	if ctx.Err() == nil || s.pause == 0 {
		w.Logger.Warn("newly unread waits", "partition", int(s.Partition), "rows", s.size, "error", err)
	}
	s.size = max(1, s.size/2)
	if errors.Is(err, ErrUnfit) {
		if s.Attempts++; s.size > 1 {
			s.Attempts = max(s.Attempts, doubtAfter) // find the row
		}
	}
	s.pause = min(max(leastPause, 2*s.pause), mostPause)
	s.resume = time.Now().Add(s.pause)
}

// WorkerStats is what a worker has done since it was made.
type WorkerStats struct {
	Relayed int64 // messages of which it was found out to whom they count
	Stored  int64 // events that were stored
	Parked  int64 // rows set aside

	// Of the projection:
	Coalesced   int64 // events not applied because one of the same sender came after them in their batch
	Redundant   int64 // events not applied because the check said that they would change nothing
	Unsure      int64 // batches applied whole because the check could not tell, or was away
	Applied     int64 // changes applied
	Generations int64 // how often all copies of a partition were made old
}

// Stats tells what the worker has done.
func (w *Worker) Stats() WorkerStats {
	return WorkerStats{
		Relayed: w.relayed.Load(), Stored: w.stored.Load(), Parked: w.parked.Load(),
		Coalesced: w.coalesced.Load(), Redundant: w.redundant.Load(), Unsure: w.unsure.Load(),
		Applied: w.applied.Load(), Generations: w.generations.Load(),
	}
}
