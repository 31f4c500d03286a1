package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres/internal/dbsqlc"
)

// relayedEvents bounds the events that one batch of messages may write.
const relayedEvents = 20_000

// NewlyUnread implements newlyunread.Store.
func (s *Store) NewlyUnread(ctx context.Context, user id.User, limit int) ([]newlyunread.Sender, newlyunread.Position, *time.Time, error) {
	row, err := again(ctx, s, func() (dbsqlc.GetNewlyUnreadRow, error) {
		return s.q.GetNewlyUnread(ctx, s.pool, int64(user), int32(limit)) //nolint:gosec // a page
	})
	if err != nil {
		return nil, 0, nil, err
	}
	senders := make([]newlyunread.Sender, len(row.Senders))
	for i, sender := range row.Senders {
		senders[i] = newlyunread.Sender{UserID: id.User(sender), LatestAt: time.UnixMicro(row.Latest[i]).UTC()}
	}
	return senders, newlyunread.Position(row.Position), row.AcknowledgedAt, nil
}

// Acknowledge implements newlyunread.Store.
func (s *Store) Acknowledge(ctx context.Context, user id.User, asOf *newlyunread.Position) error {
	_, err := again(ctx, s, func() (struct{}, error) {
		return struct{}{}, s.q.Acknowledge(ctx, s.pool, int64(user), (*int64)(asOf))
	})
	return err
}

// KeepWorker implements newlyunread.Queue.
func (s *Store) KeepWorker(ctx context.Context, worker string, within time.Duration) (int, error) {
	living, err := again(ctx, s, func() (int32, error) {
		return s.q.KeepWorker(ctx, s.pool, worker, within.Milliseconds())
	})
	return int(living), err
}

// ForgetWorker implements newlyunread.Queue.
func (s *Store) ForgetWorker(ctx context.Context, worker string) error {
	return translate(s.q.ForgetWorker(ctx, s.pool, worker))
}

// RenewLeases implements newlyunread.Queue.
func (s *Store) RenewLeases(ctx context.Context, worker string, most int, length time.Duration) ([]newlyunread.Lease, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.RenewLeasesRow, error) {
		return s.q.RenewLeases(ctx, s.pool, dbsqlc.RenewLeasesParams{
			Owner: worker, Most: int64(most), LengthMs: length.Milliseconds(),
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
		}
	}
	return claimed, nil
}

// Pending implements newlyunread.Queue.
func (s *Store) Pending(ctx context.Context, partitions []newlyunread.Partition) ([]newlyunread.Partition, error) {
	mine := make([]int16, len(partitions))
	for i, p := range partitions {
		mine[i] = int16(p)
	}
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
	return s.users(ctx, func() ([]int64, error) {
		return s.q.ListRecipients(ctx, s.pool, int16(partition), int32(batch)) //nolint:gosec // some hundreds
	})
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
	done := newlyunread.Done{Held: row.Held, Taken: int(row.Taken), Changed: make([]id.User, len(row.Recipients))}
	for i, user := range row.Recipients {
		done.Changed[i] = id.User(user)
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
