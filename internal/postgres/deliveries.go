package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/postgres/internal/dbsqlc"
)

// SyncState implements delivery.Store.
func (s *Store) SyncState(ctx context.Context, user id.User, device id.Device, channelID id.Channel) (state delivery.State, storeEpoch string, err error) {
	storeEpoch, err = withEpoch(ctx, s, func(conn *pgxpool.Conn) (string, error) {
		row, err := s.q.GetSyncState(ctx, conn, dbsqlc.GetSyncStateParams{
			UserID: int64(user), DeviceID: string(device), ChannelID: int64(channelID),
		})
		state = syncState(dbsqlc.ListSyncStatesRow(row))
		return row.StoreInstance, err
	})
	if noRows(err) {
		err = fault.NoChannel()
	}
	return state, storeEpoch, err
}

// SyncStates implements delivery.Store.
func (s *Store) SyncStates(ctx context.Context, user id.User, device id.Device, after id.Channel, limit int) (states []delivery.State, storeEpoch string, err error) {
	storeEpoch, err = withEpoch(ctx, s, func(conn *pgxpool.Conn) (instance string, err error) {
		_, err = s.q.TouchDevice(ctx, conn, int64(user), string(device))
		if err != nil && !isReadOnly(err) { // that it was heard of can wait for another day
			return "", err
		}
		rows, err := s.q.ListSyncStates(ctx, conn, dbsqlc.ListSyncStatesParams{
			UserID: int64(user), DeviceID: string(device), After: int64(after), PageSize: int32(limit), //nolint:gosec // a page
		})
		states = make([]delivery.State, len(rows))
		for i, row := range rows {
			states[i], instance = syncState(row), row.StoreInstance
		}
		return instance, err
	})
	return states, storeEpoch, err
}

func syncState(row dbsqlc.ListSyncStatesRow) delivery.State {
	if row.DeliveredVersion != nil && *row.DeliveredVersion == unknownVersion {
		*row.DeliveredVersion = 0
	}
	return delivery.State{
		ChannelID:        id.Channel(row.ChannelID),
		JoinedSeq:        id.Seq(row.JoinedSeq),
		HighWaterSeq:     id.Seq(row.HighWaterSeq),
		Version:          id.Seq(row.Version),
		DeletedVersion:   id.Seq(row.DeletedVersion),
		DeliveredSeq:     (*id.Seq)(row.DeliveredSeq),
		DeliveredVersion: (*id.Seq)(row.DeliveredVersion),
	}
}

// ResetSyncState implements delivery.Store.
func (s *Store) ResetSyncState(ctx context.Context, user id.User, device id.Device, channelID id.Channel) error {
	_, err := again(ctx, s, func() (struct{}, error) {
		return struct{}{}, s.q.ResetSyncState(ctx, s.pool, dbsqlc.ResetSyncStateParams{
			UserID: int64(user), DeviceID: string(device), ChannelID: int64(channelID),
		})
	})
	if isReadOnly(err) { // the device is told what to do all the same, and asks again if it does not
		return nil
	}
	return err
}

// DeletedSeqs implements delivery.Store.
func (s *Store) DeletedSeqs(ctx context.Context, stretch delivery.Stretch, limit int) ([]id.Seq, error) {
	rows, err := again(ctx, s, func() ([]int64, error) {
		return s.q.ListDeletedSeqs(ctx, s.pool, dbsqlc.ListDeletedSeqsParams{
			ChannelID: int64(stretch.ChannelID), Since: int64(stretch.Since),
			After: int64(stretch.After), UpTo: int64(stretch.UpTo), PageSize: int32(limit), //nolint:gosec // a page
		})
	})
	if err != nil {
		return nil, err
	}
	seqs := make([]id.Seq, len(rows))
	for i, seq := range rows {
		seqs[i] = id.Seq(seq)
	}
	return seqs, nil
}

// CountDeletions implements delivery.Store.
func (s *Store) CountDeletions(ctx context.Context, stretches []delivery.Stretch, limit int) ([]int, error) {
	params := dbsqlc.CountDeletionsParams{CountTo: int32(limit)} //nolint:gosec // a page
	for _, stretch := range stretches {
		params.ChannelIDs = append(params.ChannelIDs, int64(stretch.ChannelID))
		params.Sinces = append(params.Sinces, int64(stretch.Since))
		params.Afters = append(params.Afters, int64(stretch.After))
		params.UpTos = append(params.UpTos, int64(stretch.UpTo))
	}
	rows, err := again(ctx, s, func() ([]dbsqlc.CountDeletionsRow, error) { return s.q.CountDeletions(ctx, s.pool, params) })
	if err != nil {
		return nil, err
	}
	byChannel := make(map[int64]int, len(rows))
	for _, row := range rows {
		byChannel[row.ChannelID] = int(row.Deletions)
	}
	counts := make([]int, len(stretches))
	for i, channelID := range params.ChannelIDs {
		counts[i] = byChannel[channelID]
	}
	return counts, nil
}

// unknownVersion stands for the version of a device that has said none.
const unknownVersion = -1

// Confirm implements delivery.Store.
func (s *Store) Confirm(ctx context.Context, user id.User, device id.Device, storeEpoch *string, cursors []delivery.Confirmed) ([]delivery.Recorded, error) {
	params := dbsqlc.ConfirmDeliveryParams{DeviceID: string(device), UserID: int64(user)}
	for _, c := range cursors {
		params.ChannelIDs = append(params.ChannelIDs, int64(c.ChannelID))
		params.Seqs = append(params.Seqs, int64(c.Seq))
		version := int64(unknownVersion)
		if c.Version != nil {
			version = int64(*c.Version)
		}
		params.Versions = append(params.Versions, version)
	}
	rows, err := again(ctx, s, func() (rows []dbsqlc.ConfirmDeliveryRow, err error) {
		err = s.inTx(ctx, func(tx pgx.Tx) error {
			if storeEpoch != nil {
				if err := s.mustBe(ctx, tx, *storeEpoch); err != nil {
					return err
				}
			}
			if err := s.q.KeepDevice(ctx, tx, int64(user), string(device)); err != nil {
				return err
			}
			rows, err = s.q.ConfirmDelivery(ctx, tx, params)
			if err == nil && len(rows) < len(cursors) {
				err = fault.NoChannel()
			}
			return err
		})
		return rows, err
	})
	if err != nil {
		return nil, err
	}
	recorded := make([]delivery.Recorded, len(rows))
	for i, row := range rows {
		recorded[i] = delivery.Recorded{
			ChannelID:        id.Channel(row.ChannelID),
			DeviceID:         device,
			LastDeliveredSeq: id.Seq(row.LastDeliveredSeq),
			ConfirmedAt:      row.ConfirmedAt,
		}
	}
	return recorded, nil
}

// mustBe refuses a store epoch that is not the store's.
func (s *Store) mustBe(ctx context.Context, tx pgx.Tx, storeEpoch string) error {
	row, err := s.q.GetStoreEpoch(ctx, tx)
	if err == nil && row.StoreEpoch != storeEpoch {
		err = &fault.Error{
			Code: fault.Conflict, Argument: "storeEpoch",
			Message: "storeEpoch is that of another store: sync, and confirm what that brings",
		}
	}
	return err
}

// ForgetDevice implements delivery.Store.
func (s *Store) ForgetDevice(ctx context.Context, user id.User, device id.Device) (known bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		known, err = s.forget(ctx, tx, int64(user), string(device))
		return err
	})
	return known, err
}

// ForgetUnseen implements delivery.Store.
func (s *Store) ForgetUnseen(ctx context.Context, before time.Time, limit int) (forgotten int, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		devices, err := s.q.ListUnseenDevices(ctx, tx, before, int32(limit)) //nolint:gosec // a page
		if err != nil {
			return err
		}
		for _, d := range devices {
			if _, err := s.forget(ctx, tx, d.UserID, d.DeviceID); err != nil {
				return err
			}
		}
		forgotten = len(devices)
		return nil
	})
	return forgotten, err
}

// forget takes the device's row first: whoever records a cursor meanwhile holds it, or finds it gone.
func (s *Store) forget(ctx context.Context, tx pgx.Tx, user int64, device string) (known bool, err error) {
	deleted, err := s.q.DeleteDevice(ctx, tx, user, device)
	if err != nil {
		return false, err
	}
	return deleted > 0, s.q.DeleteSyncStates(ctx, tx, user, device)
}
