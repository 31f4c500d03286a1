package postgres

import (
	"context"

	"tidemark/internal/postgres/internal/dbsqlc"
)

// epochs remembers a server's store epoch, so that not every call has to have it worked out.
type epochs struct {
	instance, epoch string
}

// storeEpoch names the incarnation of the data that a statement read, which was told by that instance: after a
// restore, or a failover that lost commits, it is another. Where no statement was told one, it asks.
func (s *Store) storeEpoch(ctx context.Context, instance string) (string, error) {
	if known := s.epochs.Load(); known != nil && instance != "" && known.instance == instance {
		return known.epoch, nil
	}
	row, err := again(ctx, s, func() (dbsqlc.GetStoreEpochRow, error) { return s.q.GetStoreEpoch(ctx, s.pool) })
	if err != nil {
		return "", err
	}
	s.epochs.Store(&epochs{instance: row.StoreInstance, epoch: row.StoreEpoch})
	return row.StoreEpoch, nil
}
