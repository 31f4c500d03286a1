package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// epochKey is where a connection remembers the store epoch that was worked out on it.
const epochKey = "tidemark store epoch"

// epoch is the store epoch, and the running server that it was told by.
type epoch struct{ instance, name string }

// withEpoch runs a read and names the incarnation of the data that it read: after a restore, or a failover that lost
// commits, it is another. Both are done on one connection, which does not outlive its database, so they cannot be of
// two. The read returns the instance that its statement was told, or nothing where it had no rows.
func withEpoch(ctx context.Context, s *Store, read func(*pgxpool.Conn) (instance string, err error)) (string, error) {
	return again(ctx, s, func() (string, error) {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return "", err
		}
		defer conn.Release()
		instance, err := read(conn)
		if err != nil {
			return "", err
		}
		remembered := conn.Conn().PgConn().CustomData()
		if known, ok := remembered[epochKey].(epoch); ok && instance != "" && known.instance == instance {
			return known.name, nil
		}
		row, err := s.q.GetStoreEpoch(ctx, conn)
		if err != nil {
			return "", err
		}
		remembered[epochKey] = epoch{instance: row.StoreInstance, name: row.StoreEpoch}
		return row.StoreEpoch, nil
	})
}
