package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres/internal/dbsqlc"
)

// relayedEvents bounds the events that one batch of messages may write.
const relayedEvents = 20_000

// NewlyUnread implements newlyunread.Store.
func (s *Store) NewlyUnread(ctx context.Context, user id.User, limit int) (newlyunread.Snapshot, error) {
	var row dbsqlc.GetNewlyUnreadRow
	store, err := withEpoch(ctx, s, func(conn *pgxpool.Conn) (instance string, err error) {
		row, err = s.q.GetNewlyUnread(ctx, conn, int64(user), int32(limit)) //nolint:gosec // a page
		return row.StoreInstance, err
	})
	if err != nil {
		return newlyunread.Snapshot{}, err
	}
	senders := make([]newlyunread.Sender, len(row.Senders))
	for i, sender := range row.Senders {
		senders[i] = newlyunread.Sender{UserID: id.User(sender), LatestAt: newlyunread.Position(row.Latest[i]).Time()}
	}
	return newlyunread.Snapshot{
		Senders:        senders,
		AsOf:           newlyunread.Position(row.Position),
		Acknowledged:   newlyunread.Position(row.Acknowledged),
		AcknowledgedAt: row.AcknowledgedAt,
		Generation:     newlyunread.Generation{Store: store, Number: row.Generation},
	}, nil
}

// Acknowledge implements newlyunread.Store.
func (s *Store) Acknowledge(ctx context.Context, user id.User, asOf *newlyunread.Position) error {
	_, err := again(ctx, s, func() (struct{}, error) {
		return struct{}{}, s.q.Acknowledge(ctx, s.pool, int64(user), (*int64)(asOf))
	})
	return err
}

// KeepWorker implements newlyunread.Queue.
func (s *Store) KeepWorker(ctx context.Context, worker string, within time.Duration) (living int, store string, err error) {
	row, err := again(ctx, s, func() (dbsqlc.KeepWorkerRow, error) {
		return s.q.KeepWorker(ctx, s.pool, worker, within.Milliseconds())
	})
	return int(row.Living), row.StoreEpoch, err
}

// ForgetWorker implements newlyunread.Queue.
func (s *Store) ForgetWorker(ctx context.Context, worker string, settled []newlyunread.Partition) error {
	return translate(s.q.ForgetWorker(ctx, s.pool, int16s(settled), worker))
}

// RenewLeases implements newlyunread.Queue.
func (s *Store) RenewLeases(ctx context.Context, worker string, most int, length time.Duration, settled []newlyunread.Partition) ([]newlyunread.Lease, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.RenewLeasesRow, error) {
		return s.q.RenewLeases(ctx, s.pool, dbsqlc.RenewLeasesParams{
			Owner: worker, Most: int64(most), LengthMs: length.Milliseconds(), Settled: int16s(settled),
		})
	})
	if err != nil {
		return nil, err
	}
	var kept []newlyunread.Lease
	for _, row := range rows {
		if row.Kept {
			kept = append(kept, newlyunread.Lease{Partition: newlyunread.Partition(row.Partition), Fence: row.Fence})
		}
	}
	return kept, nil
}

// ClaimLeases implements newlyunread.Queue.
func (s *Store) ClaimLeases(ctx context.Context, worker string, most int, length time.Duration) ([]newlyunread.Lease, error) {
	rows, err := s.q.ClaimLeases(ctx, s.pool, dbsqlc.ClaimLeasesParams{
		Owner: worker, LengthMs: length.Milliseconds(), Most: int32(most), //nolint:gosec // as many as there are partitions
	})
	if err != nil {
		return nil, translate(err)
	}
	claimed := make([]newlyunread.Lease, len(rows))
	for i, row := range rows {
		claimed[i] = newlyunread.Lease{
			Partition: newlyunread.Partition(row.Partition), Fence: row.Fence, Attempts: int(row.Attempts),
			Generation: row.Generation, Position: newlyunread.Position(row.Position),
		}
	}
	return claimed, nil
}

// Pending implements newlyunread.Queue.
func (s *Store) Pending(ctx context.Context, partitions []newlyunread.Partition) ([]newlyunread.Partition, error) {
	mine := int16s(partitions)
	rows, err := again(ctx, s, func() ([]int16, error) { return s.q.ListPending(ctx, s.pool, mine) })
	if err != nil {
		return nil, err
	}
	pending := make([]newlyunread.Partition, len(rows))
	for i, p := range rows {
		pending[i] = newlyunread.Partition(p)
	}
	return pending, nil
}

// int16s never returns nil, which would be NULL.
func int16s(partitions []newlyunread.Partition) []int16 {
	numbers := make([]int16, len(partitions))
	for i, p := range partitions {
		numbers[i] = int16(p)
	}
	return numbers
}

// Relay implements newlyunread.Queue. A batch is the smaller the larger groups may be: it writes an event for each member.
func (s *Store) Relay(ctx context.Context, lease newlyunread.Lease, batch int) (newlyunread.Done, error) {
	row, err := s.q.RelayOutbox(ctx, s.pool, dbsqlc.RelayOutboxParams{
		MaxMembers: s.maxMembers, Fence: lease.Fence,
		BatchSize: int32(min(batch, max(1, relayedEvents/int(s.maxMembers)))), //nolint:gosec // some hundreds
	})
	if err != nil {
		return newlyunread.Done{}, unfit(err)
	}
	return newlyunread.Done{Held: row.Held, Taken: int(row.Taken)}, nil
}

// Recipients implements newlyunread.Queue.
func (s *Store) Recipients(ctx context.Context, partition newlyunread.Partition, batch int) ([]id.User, error) {
	rows, err := again(ctx, s, func() ([]int64, error) {
		return s.q.ListRecipients(ctx, s.pool, int16(partition), int32(batch)) //nolint:gosec // some hundreds
	})
	return ids[id.User](rows), err
}

// Project implements newlyunread.Queue.
func (s *Store) Project(ctx context.Context, lease newlyunread.Lease, batch int, call newlyunread.RollCall) (newlyunread.Done, error) {
	params := dbsqlc.StoreArrivalsParams{
		Partition: int16(lease.Partition), Fence: lease.Fence, BatchSize: int32(batch), //nolint:gosec // some hundreds
		Online: int64s(call.Online),
	}
	if call.Asked != nil {
		params.Asked = int64s(call.Asked)
	}
	row, err := s.q.StoreArrivals(ctx, s.pool, params)
	if err != nil {
		return newlyunread.Done{}, unfit(err)
	}
	done := newlyunread.Done{
		Held: row.Held, Taken: int(row.Taken), Position: newlyunread.Position(row.Position),
		Arrived:      make([]newlyunread.Arrival, len(row.Positions)),
		Acknowledged: make([]newlyunread.Acknowledgment, len(row.Viewers)),
	}
	for i, position := range row.Positions {
		done.Arrived[i] = newlyunread.Arrival{
			Recipient: id.User(row.Recipients[i]), Sender: id.User(row.Senders[i]), Position: newlyunread.Position(position),
		}
	}
	for i, viewer := range row.Viewers {
		done.Acknowledged[i] = newlyunread.Acknowledgment{User: id.User(viewer), Position: newlyunread.Position(row.Acknowledged[i])}
	}
	return done, nil
}

// unfit marks an error that only the data of a row can be at fault for.
func unfit(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && len(pg.Code) == 5 {
		switch pg.Code[:2] {
		case classData, classConstraint, classRaised:
			return fmt.Errorf("%w: %w", newlyunread.ErrUnfit, err)
		}
	}
	return translate(err)
}

// BeginAttempt implements newlyunread.Queue.
func (s *Store) BeginAttempt(ctx context.Context, lease newlyunread.Lease) (int, error) {
	attempts, err := s.q.BeginAttempt(ctx, s.pool, int16(lease.Partition), lease.Fence)
	if noRows(err) { // somebody else's by now
		return 0, nil
	}
	return int(attempts), translate(err)
}

// BeginGeneration implements newlyunread.Queue.
func (s *Store) BeginGeneration(ctx context.Context, lease newlyunread.Lease) (int64, newlyunread.Position, bool, error) {
	row, err := s.q.BeginGeneration(ctx, s.pool, int16(lease.Partition), lease.Fence)
	if noRows(err) {
		return 0, 0, false, nil
	}
	return row.Generation, newlyunread.Position(row.Position), err == nil, translate(err)
}

// Park implements newlyunread.Queue.
func (s *Store) Park(ctx context.Context, lease newlyunread.Lease) (err error) {
	if lease.Partition < 0 {
		_, err = s.q.ParkMessage(ctx, s.pool, lease.Fence)
	} else {
		_, err = s.q.ParkEvent(ctx, s.pool, int16(lease.Partition), lease.Fence)
	}
	return translate(err)
}

// Parked counts what was set aside.
func (s *Store) Parked(ctx context.Context) (int, error) {
	parked, err := again(ctx, s, func() (int64, error) { return s.q.CountParked(ctx, s.pool) })
	return int(parked), err
}

// Positions returns what marks of the copies say that lack nothing at all.
func (s *Store) Positions(ctx context.Context) ([]newlyunread.Mark, error) {
	var rows []dbsqlc.ListPositionsRow
	store, err := withEpoch(ctx, s, func(conn *pgxpool.Conn) (instance string, err error) {
		rows, err = s.q.ListPositions(ctx, conn)
		return "", err
	})
	if err != nil {
		return nil, err
	}
	marks := make([]newlyunread.Mark, len(rows))
	for i, row := range rows {
		marks[i] = newlyunread.Mark{
			Partition:  newlyunread.Partition(row.Partition),
			Generation: newlyunread.Generation{Store: store, Number: row.Generation},
			Position:   newlyunread.Position(row.Position),
		}
	}
	return marks, nil
}
