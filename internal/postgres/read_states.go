package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/postgres/internal/dbsqlc"
	"tidemark/internal/readstate"
)

// Badges implements readstate.Store.
func (s *Store) Badges(ctx context.Context, user id.User, limit int) (badges []readstate.Badge, storeEpoch string, err error) {
	storeEpoch, err = withEpoch(ctx, s, func(conn *pgxpool.Conn) (instance string, err error) {
		rows, err := s.q.ListBadges(ctx, conn, countTo(limit), int64(user))
		badges = make([]readstate.Badge, len(rows))
		for i, row := range rows {
			badges[i] = badge(dbsqlc.ListBadgesOfRow{
				UserID: int64(user), ChannelID: row.ChannelID,
				HighWaterSeq: row.HighWaterSeq, LastReadSeq: row.LastReadSeq, JoinedSeq: row.JoinedSeq,
				ReadEpoch: row.ReadEpoch, Muted: row.Muted, HeadVersion: row.HeadVersion, StateVersion: row.StateVersion,
				Activity: row.Activity, Unread: row.Unread, Mentions: row.Mentions,
				ReceiptSeq: row.ReceiptSeq, MemberIndex: row.MemberIndex,
			})
			instance = row.StoreInstance
		}
		return instance, err
	})
	return badges, storeEpoch, err
}

// BadgesOf implements readstate.Store.
func (s *Store) BadgesOf(ctx context.Context, seats []readstate.Seat, limit int) ([]readstate.Badge, error) {
	params := dbsqlc.ListBadgesOfParams{
		CountTo: countTo(limit), UserIDs: make([]int64, len(seats)), ChannelIDs: make([]int64, len(seats)),
	}
	for i, seat := range seats {
		params.UserIDs[i], params.ChannelIDs[i] = int64(seat.UserID), int64(seat.ChannelID)
	}
	rows, err := again(ctx, s, func() ([]dbsqlc.ListBadgesOfRow, error) {
		return s.q.ListBadgesOf(ctx, s.pool, params)
	})
	if err != nil {
		return nil, err
	}
	badges := make([]readstate.Badge, len(rows))
	for i, row := range rows {
		badges[i] = badge(row)
	}
	return badges, nil
}

// Versions implements live.Store.
func (s *Store) Versions(ctx context.Context, users []id.User) (versions []live.Version, storeEpoch string, err error) {
	storeEpoch, err = withEpoch(ctx, s, func(conn *pgxpool.Conn) (instance string, err error) {
		rows, err := s.q.ListVersions(ctx, conn, int64s(users))
		versions = make([]live.Version, len(rows))
		for i, row := range rows {
			versions[i] = live.Version{
				Seat: readstate.Seat{UserID: id.User(row.UserID), ChannelID: id.Channel(row.ChannelID)},
				Head: id.Seq(row.HeadVersion), State: id.Seq(row.StateVersion),
			}
			instance = row.StoreInstance
		}
		return instance, err
	})
	return versions, storeEpoch, err
}

// HeadVersions implements live.Store.
func (s *Store) HeadVersions(ctx context.Context, channels []id.Channel) (map[id.Channel]id.Seq, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListHeadVersionsRow, error) {
		return s.q.ListHeadVersions(ctx, s.pool, int64s(channels))
	})
	if err != nil {
		return nil, err
	}
	versions := make(map[id.Channel]id.Seq, len(rows))
	for _, row := range rows {
		versions[id.Channel(row.ChannelID)] = id.Seq(row.Version)
	}
	return versions, nil
}

// Advance implements readstate.Store. The statements travel together and are one transaction.
func (s *Store) Advance(ctx context.Context, user id.User, device id.Device, cursors []readstate.Cursor) ([]readstate.Move, error) {
	params := make([]dbsqlc.AdvanceReadStatesParams, len(cursors))
	for i, c := range cursors {
		params[i] = advanceParams(user, device, c)
	}
	return again(ctx, s, func() (moves []readstate.Move, failed error) {
		moves = make([]readstate.Move, len(cursors))
		batch := s.q.AdvanceReadStates(ctx, s.pool, params)
		batch.QueryRow(func(i int, highWater int64, err error) {
			switch {
			case err == nil:
				moves[i] = readstate.Move{Moved: true, HighWaterSeq: id.Seq(highWater)}
			case !noRows(err) && failed == nil:
				failed = err
			}
		})
		if err := batch.Close(); failed == nil { // the commit
			failed = err
		}
		return moves, failed
	})
}

// Retreat implements readstate.Store.
func (s *Store) Retreat(ctx context.Context, user id.User, channel id.Channel, seq id.Seq, epoch *int) (moved, done bool, err error) {
	moved, err = s.q.RetreatReadState(ctx, s.pool, dbsqlc.RetreatReadStateParams{
		FromSeq: int64(seq), UserID: int64(user), ChannelID: int64(channel), ReadEpoch: readEpoch(epoch),
	})
	if noRows(err) {
		return false, false, nil
	}
	return moved, err == nil, translate(err)
}

// SetMuted implements readstate.Store.
func (s *Store) SetMuted(ctx context.Context, user id.User, channel id.Channel, muted bool) error {
	mute := func(tx pgx.Tx) error {
		if muted { // what came until now came to a channel that was not
			if err := s.flushOutbox(ctx, tx, user, channel, false); err != nil {
				return err
			}
		}
		_, err := s.q.SetMuted(ctx, tx, dbsqlc.SetMutedParams{Muted: muted, UserID: int64(user), ChannelID: int64(channel)})
		return err
	}
	_, err := again(ctx, s, func() (struct{}, error) { return struct{}{}, pgx.BeginFunc(ctx, s.pool, mute) })
	return err
}

// flushOutbox finds out which of the messages that wait in a channel count for a person who is about to mute or leave it.
func (s *Store) flushOutbox(ctx context.Context, tx pgx.Tx, user id.User, channel id.Channel, leaving bool) error {
	return s.q.FlushOutbox(ctx, tx, dbsqlc.FlushOutboxParams{
		UserID: int64(user), ChannelID: int64(channel), MaxMembers: s.maxMembers, Leaving: leaving,
	})
}

func badge(row dbsqlc.ListBadgesOfRow) readstate.Badge {
	return readstate.Badge{
		UserID:       id.User(row.UserID),
		ChannelID:    id.Channel(row.ChannelID),
		HeadVersion:  id.Seq(row.HeadVersion),
		StateVersion: id.Seq(row.StateVersion),
		HighWaterSeq: id.Seq(row.HighWaterSeq),
		LastReadSeq:  id.Seq(row.LastReadSeq),
		JoinedSeq:    id.Seq(row.JoinedSeq),
		ReadEpoch:    int(row.ReadEpoch),
		Muted:        row.Muted,
		Activity:     row.Activity,
		ReceiptSeq:   id.Seq(row.ReceiptSeq),
		MemberIndex:  int(row.MemberIndex),
		Countable:    int(row.Unread),
		Naming:       int(row.Mentions),
	}
}

func advanceParams(user id.User, device id.Device, c readstate.Cursor) dbsqlc.AdvanceReadStatesParams {
	params := dbsqlc.AdvanceReadStatesParams{
		UpToSeq: int64(c.UpToSeq), UserID: int64(user), ChannelID: int64(c.ChannelID), ReadEpoch: readEpoch(c.ReadEpoch),
	}
	if device != "" {
		params.DeviceID = (*string)(&device)
	}
	return params
}

// readEpoch passes an epoch on. GraphQL's Int has 32 bits, so it fits.
func readEpoch(epoch *int) *int32 {
	if epoch == nil {
		return nil
	}
	fits := int32(min(max(*epoch, -1), 1<<31-1))
	return &fits
}

// countTo is where counting by rows may end: one past the limit tells that there are more.
func countTo(limit int) int32 {
	return int32(min(limit, readstate.MaxCap) + 1) //nolint:gosec // bounded on the line
}
