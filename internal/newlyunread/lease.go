package newlyunread

import (
	"context"
	"time"
)

// keepLeases has as many leases as are this worker's share. It does nothing before the next beat.
func (w *Worker) keepLeases(ctx context.Context) (err error) {
	if time.Since(w.beaten) < beat {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			clear(w.leases) // whether they still are ours is not known
		}
	}()
	begun := time.Now()
	living, store, err := w.Queue.KeepWorker(ctx, w.name, leaseLength)
	if err != nil {
		return err
	}
	if store != w.store { // its generations and positions are others
		w.store = store
		clear(w.leases)
	}
	share := (partitions + living - 1) / living
	var settled []Partition
	if share < len(w.leases) {
		settled = w.settled(ctx)
	}
	kept, err := w.Queue.RenewLeases(ctx, w.name, share, leaseLength, settled)
	if err != nil {
		return err
	}
	var claimed []Lease
	if more := share - len(kept); more > 0 {
		if claimed, err = w.Queue.ClaimLeases(ctx, w.name, more, leaseLength); err != nil {
			return err
		}
	}
	before := w.leases
	w.leases = make(map[Partition]*state, len(kept)+len(claimed))
	for _, l := range kept {
		s := before[l.Partition]
		if s == nil || s.Fence != l.Fence { // what was done under it is not known any more
			s = &state{Lease: l, size: mostRows(l.Partition), doubtful: l.Partition != relay}
		}
		w.leases[l.Partition] = s
	}
	for _, l := range claimed {
		w.leases[l.Partition] = &state{Lease: l, size: mostRows(l.Partition), doubtful: w.Projection == nil && l.Partition != relay}
	}
	w.beaten = begun
	return nil
}

// state is a lease, and how it goes with its partition.
type state struct {
	Lease
	size   int // of the next batch
	pause  time.Duration
	resume time.Time // nothing is tried before

	doubtful bool      // copies of this generation may lack something
	marked   time.Time // when they were marked last
}
