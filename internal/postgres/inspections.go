package postgres

import (
	"context"

	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/person"
	"tidemark/internal/postgres/internal/dbsqlc"
)

// Explain implements inspect.Store.
func (s *Store) Explain(ctx context.Context, user id.User, first, last id.Channel, limit, counted int) ([]inspect.Explanation, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ExplainBadgesRow, error) {
		return s.q.ExplainBadges(ctx, s.pool, dbsqlc.ExplainBadgesParams{
			UserID: int64(user), FirstID: int64(first), LastID: int64(last),
			PageSize: int32(limit), CountTo: countTo(counted), MaxDevices: inspect.MaxDevices, //nolint:gosec // a page
		})
	})
	if err != nil {
		return nil, err
	}
	explained := make([]inspect.Explanation, len(rows))
	for i, row := range rows {
		explained[i] = explanation(user, row)
	}
	return explained, nil
}

func explanation(user id.User, row dbsqlc.ExplainBadgesRow) inspect.Explanation {
	e := inspect.Explanation{
		Badge: badge(dbsqlc.ListBadgesOfRow{
			UserID: int64(user), ChannelID: row.ChannelID,
			HighWaterSeq: row.HighWaterSeq, LastReadSeq: row.LastReadSeq, JoinedSeq: row.JoinedSeq,
			ReadEpoch: row.ReadEpoch, Muted: row.Muted, HeadVersion: row.HeadVersion, StateVersion: row.StateVersion,
			Activity: row.Activity, Unread: row.Unread, Mentions: row.Mentions,
		}),
		ChannelName:         row.Name,
		ReceiptSeq:          id.Seq(row.ReceiptSeq),
		DeletedInGap:        int(row.Deleted),
		OwnInGap:            int(row.Own),
		LastMovedAt:         row.MovedAt,
		LastMovedBy:         inspect.Move(row.MovedBy),
		LastMovedByDeviceID: (*id.Device)(row.MovedDevice),
		Devices:             make([]delivery.Recorded, len(row.Devices)),
	}
	if row.OtherID != 0 {
		e.ChannelName = person.Called(id.User(row.OtherID), row.OtherName).DisplayName
	}
	for i, device := range row.Devices {
		e.Devices[i] = delivery.Recorded{
			ChannelID: e.ChannelID, DeviceID: id.Device(device),
			LastDeliveredSeq: id.Seq(row.Delivered[i]), ConfirmedAt: row.Confirmed[i],
		}
	}
	return e
}

// Devices implements inspect.Store.
func (s *Store) Devices(ctx context.Context, user id.User, limit int) ([]inspect.Device, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListDevicesRow, error) {
		return s.q.ListDevices(ctx, s.pool, int64(user), int32(limit)) //nolint:gosec // a page
	})
	if err != nil {
		return nil, err
	}
	devices := make([]inspect.Device, len(rows))
	for i, row := range rows {
		devices[i] = inspect.Device{ID: id.Device(row.DeviceID), LastConfirmedAt: row.ConfirmedAt, Channels: int(row.Channels)}
	}
	return devices, nil
}

// FindPeople implements inspect.Store.
func (s *Store) FindPeople(ctx context.Context, beginning string, limit int) ([]person.Person, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.FindUsersRow, error) {
		return s.q.FindUsers(ctx, s.pool, beginning, int32(limit)) //nolint:gosec // a page
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
