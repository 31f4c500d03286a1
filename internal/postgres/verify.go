package postgres

import (
	"context"

	"tidemark/internal/id"
	"tidemark/internal/postgres/internal/dbsqlc"
	"tidemark/internal/verify"
)

// Readers implements verify.Store.
func (s *Store) Readers(ctx context.Context, after id.User, limit int) ([]id.User, error) {
	return s.users(ctx, func() ([]int64, error) {
		return s.q.ListReaders(ctx, s.pool, int64(after), int32(limit)) //nolint:gosec // a page
	})
}

// RandomReaders implements verify.Store.
func (s *Store) RandomReaders(ctx context.Context, sample int) ([]id.User, error) {
	return s.users(ctx, func() ([]int64, error) {
		return s.q.ListRandomReaders(ctx, s.pool, int32(min(sample, verify.MaxSample))) //nolint:gosec // bounded on the line
	})
}

func (s *Store) users(ctx context.Context, list func() ([]int64, error)) ([]id.User, error) {
	rows, err := again(ctx, s, list)
	if err != nil {
		return nil, err
	}
	users := make([]id.User, len(rows))
	for i, row := range rows {
		users[i] = id.User(row)
	}
	return users, nil
}

// Drift implements verify.Store.
func (s *Store) Drift(ctx context.Context, users []id.User) ([]verify.Drift, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListDriftRow, error) { return s.q.ListDrift(ctx, s.pool, int64s(users)) })
	if err != nil {
		return nil, err
	}
	drift := make([]verify.Drift, len(rows))
	for i, row := range rows {
		drift[i] = verify.Drift{
			UserID: id.User(row.UserID), ChannelID: id.Channel(row.ChannelID),
			HighWaterSeq: id.Seq(row.HighWaterSeq), NewestSeq: id.Seq(row.NewestSeq), LastReadSeq: id.Seq(row.LastReadSeq),
			Unread: int(row.Unread), CountedUnread: int(row.CountedUnread),
			Mentions: int(row.Mentions), CountedMentions: int(row.CountedMentions),
		}
	}
	return drift, nil
}
