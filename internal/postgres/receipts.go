package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres/internal/dbsqlc"
	"tidemark/internal/receipt"
)

var _ receipt.Store = (*Store)(nil)

// Receipt implements receipt.Store.
func (s *Store) Receipt(ctx context.Context, viewer id.User, channel id.Channel, seq id.Seq) (receipt.Receipt, error) {
	row, err := again(ctx, s, func() (dbsqlc.GetReceiptRow, error) {
		return s.q.GetReceipt(ctx, s.pool, dbsqlc.GetReceiptParams{
			Seq: int64(seq), UserID: int64(viewer), ChannelID: int64(channel),
		})
	})
	switch {
	case noRows(err):
		return receipt.Receipt{}, fault.NoChannel()
	case err != nil:
		return receipt.Receipt{}, err
	case !row.Visible:
		return receipt.Receipt{}, fault.NoMessage()
	}
	return receipt.Receipt{
		ChannelID: channel, Seq: seq, ReadCount: int(row.Readers), AudienceCount: int(row.Audience),
	}, nil
}

// Audience implements receipt.Store.
func (s *Store) Audience(
	ctx context.Context, viewer id.User, channel id.Channel, seq id.Seq, part receipt.Part, after id.User, limit int,
) ([]person.Person, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListAudienceRow, error) {
		return s.q.ListAudience(ctx, s.pool, dbsqlc.ListAudienceParams{
			UserID: int64(viewer), ChannelID: int64(channel), Seq: int64(seq), HasRead: bool(part),
			After: int64(after), PageSize: int32(limit), //nolint:gosec // a page
		})
	})
	if err != nil {
		return nil, err
	}
	people := make([]person.Person, len(rows))
	for i, row := range rows {
		people[i] = person.Called(id.User(row.ID), row.DisplayName)
	}
	return people, nil
}

// Watch implements receipt.Store.
func (s *Store) Watch(ctx context.Context, channel id.Channel, seq id.Seq, viewers []id.User) (receipt.Watched, error) {
	row, err := again(ctx, s, func() (dbsqlc.WatchReceiptRow, error) {
		return s.q.WatchReceipt(ctx, s.pool, dbsqlc.WatchReceiptParams{
			ChannelID: int64(channel), Seq: int64(seq), Viewers: int64s(viewers),
		})
	})
	if err != nil {
		return receipt.Watched{}, err
	}
	watched := receipt.Watched{
		AudienceCount: int(row.Audience),
		Unread:        receipt.NewBitmap(int(row.MembersEver), row.Unread),
		Sights:        make(map[id.User]receipt.Sight, len(row.Members)),
	}
	for _, users := range []struct {
		ids   []int64
		sight receipt.Sight
	}{{row.Members, receipt.Full}, {row.Hiding, receipt.Blind}, {row.Unaware, receipt.Unaware}} {
		for _, user := range users.ids {
			watched.Sights[id.User(user)] = users.sight
		}
	}
	return watched, nil
}

// SetSharing implements receipt.Store.
func (s *Store) SetSharing(ctx context.Context, user id.User, share bool) (channels []id.Channel, err error) {
	set := func(tx pgx.Tx) error {
		if err := s.q.SetSharing(ctx, tx, int64(user), share); err != nil {
			return err
		}
		rows, err := s.q.SpreadSharing(ctx, tx, int64(user), share)
		channels = make([]id.Channel, len(rows))
		for i, channel := range rows {
			channels[i] = id.Channel(channel)
		}
		return err
	}
	_, err = again(ctx, s, func() (struct{}, error) { return struct{}{}, pgx.BeginFunc(ctx, s.pool, set) })
	return channels, err
}

// Sharing implements receipt.Store.
func (s *Store) Sharing(ctx context.Context, user id.User) (bool, error) {
	share, err := again(ctx, s, func() (bool, error) { return s.q.GetSharing(ctx, s.pool, int64(user)) })
	if noRows(err) { // shares are given up, not taken
		return true, nil
	}
	return share, err
}
