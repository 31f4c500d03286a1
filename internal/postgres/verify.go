package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/id"
	"tidemark/internal/postgres/internal/dbsqlc"
	"tidemark/internal/verify"
)

const (
	// drawnFrom is how many rows are read for each person that is drawn, and leastDrawnFrom at least: so many that people
	// who became known at the same time are not always drawn together.
	drawnFrom, leastDrawnFrom = 20, 10_000
	// notCounted marks a badge with too many messages to count.
	notCounted = "not_counted"
)

// CountPeople implements verify.People.
func (s *Store) CountPeople(ctx context.Context) (int, error) {
	count, err := again(ctx, s, func() (int64, error) { return s.q.CountPeople(ctx, s.pool) })
	return int(count), err
}

// PeopleAfter implements verify.People.
func (s *Store) PeopleAfter(ctx context.Context, after id.User, limit int) ([]id.User, error) {
	rows, err := again(ctx, s, func() ([]int64, error) {
		return s.q.ListPeopleAfter(ctx, s.pool, int64(after), int32(limit)) //nolint:gosec // a page
	})
	return ids[id.User](rows), err
}

// RandomPeople implements verify.Store.
func (s *Store) RandomPeople(ctx context.Context, sample int) ([]id.User, error) {
	sample = min(sample, verify.MaxSample)
	rows, err := again(ctx, s, func() ([]int64, error) {
		return s.q.ListRandomPeople(ctx, s.pool, max(int64(sample)*drawnFrom, leastDrawnFrom), int32(sample)) //nolint:gosec // bounded above
	})
	return ids[id.User](rows), err
}

// BadgeDrift implements verify.Store.
func (s *Store) BadgeDrift(ctx context.Context, users []id.User, countTo int) (drift []verify.Drift, tooMany int, err error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListDriftRow, error) {
		return s.q.ListDrift(ctx, s.pool, int64(countTo), int64s(users))
	})
	if err != nil {
		return nil, 0, err
	}
	for _, row := range rows {
		if row.What == notCounted {
			tooMany++
			continue
		}
		drift = append(drift, difference(dbsqlc.ListReadStateDriftRow(row)))
	}
	return drift, tooMany, nil
}

// ChannelsOf implements verify.Store.
func (s *Store) ChannelsOf(ctx context.Context, users []id.User) ([]id.Channel, error) {
	rows, err := again(ctx, s, func() ([]int64, error) { return s.q.ListChannelsOf(ctx, s.pool, int64s(users)) })
	return ids[id.Channel](rows), err
}

// ChannelDrift implements verify.Store.
func (s *Store) ChannelDrift(ctx context.Context, channels []id.Channel) ([]verify.Drift, error) {
	return again(ctx, s, func() ([]verify.Drift, error) {
		heads, err := s.q.ListHeadDrift(ctx, s.pool, int64s(channels))
		if err != nil {
			return nil, err
		}
		readStates, err := s.q.ListReadStateDrift(ctx, s.pool, int64s(channels))
		return differences(heads, readStates), err
	})
}

// Repair implements verify.Store. The head is locked first, then the read states of those of whom something is repaired,
// in the order of their ids, then the records of devices: as all that write to more than one of these do. It is one channel
// at a time, so two repairs wait for nobody who waits for one of them.
//
// A mark read that read the head before it was taken back, and waited for the cursor meanwhile, may put that cursor past
// the head again. To be found, that needs another run.
func (s *Store) Repair(ctx context.Context, channel id.Channel) (drift []verify.Drift, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		drift = nil
		if _, err := s.q.LockChannelHead(ctx, tx, int64(channel)); noRows(err) {
			return nil
		} else if err != nil {
			return err
		}
		// What is read after the lock stands until the end, except for cursors, which only follow the head.
		heads, err := s.q.ListHeadDrift(ctx, tx, []int64{int64(channel)})
		if err != nil {
			return err
		}
		readStates, err := s.q.ListReadStateDrift(ctx, tx, []int64{int64(channel)})
		if err != nil {
			return err
		}
		if err := s.repairHead(ctx, tx, channel, heads); err != nil {
			return err
		}
		if err := s.repairReadStates(ctx, tx, channel, readStates); err != nil {
			return err
		}
		if drift = differences(heads, readStates); len(drift) == 0 {
			return nil
		}
		return s.q.ClampDeliveries(ctx, tx, int64(channel))
	})
	return drift, err
}

func (s *Store) repairHead(ctx context.Context, tx pgx.Tx, channel id.Channel, drift []dbsqlc.ListHeadDriftRow) error {
	if len(drift) == 0 {
		return nil
	}
	repair := dbsqlc.RepairHeadParams{ChannelID: int64(channel)}
	var knownDeletions *int64
	for _, row := range drift {
		switch row.What {
		case "high_water_seq":
			repair.HighWaterSeq = &row.Counted
		case "activity":
			repair.Activity = &row.Counted
		case "version":
			repair.Version = &row.Counted
		case "last_deleted_seq":
			repair.LastDeletedSeq = &row.Counted
		case "deleted_version":
			repair.DeletedVersion = &row.Counted
			if row.Kept < row.Counted {
				knownDeletions = &row.Kept
			}
		case "last_everyone_seq":
			repair.LastEveryoneSeq = &row.Counted
		case "member_count":
			members := int32(row.Counted) //nolint:gosec // people
			repair.MemberCount = &members
		}
	}
	version, err := s.q.RepairHead(ctx, tx, repair)
	if err != nil {
		return err
	}
	if knownDeletions != nil {
		stamp := dbsqlc.StampDeletionsParams{Version: version, ChannelID: int64(channel), After: *knownDeletions}
		if err := s.q.StampDeletions(ctx, tx, stamp); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) repairReadStates(ctx context.Context, tx pgx.Tx, channel id.Channel, drift []dbsqlc.ListReadStateDriftRow) error {
	repair := dbsqlc.RepairReadStatesParams{ChannelID: int64(channel)}
	var mentions []int64
	for _, row := range drift {
		last := len(repair.UserIDs) - 1
		if last < 0 || repair.UserIDs[last] != row.UserID {
			repair.UserIDs, repair.SentSeqs = append(repair.UserIDs, row.UserID), append(repair.SentSeqs, -1)
			last++
		}
		switch row.What {
		case "last_sent_seq":
			repair.SentSeqs[last] = row.Counted
		case "mentions_missing", "mentions_left_over":
			mentions = append(mentions, row.UserID)
		}
	}
	if len(repair.UserIDs) > 0 {
		if err := s.q.RepairReadStates(ctx, tx, repair); err != nil {
			return err
		}
	}
	if len(mentions) > 0 {
		if err := s.q.DropMentions(ctx, tx, mentions, int64(channel)); err != nil {
			return err
		}
		if err := s.q.AddMentions(ctx, tx, int64(channel), mentions); err != nil {
			return err
		}
	}
	return nil
}

func differences(heads []dbsqlc.ListHeadDriftRow, readStates []dbsqlc.ListReadStateDriftRow) []verify.Drift {
	drift := make([]verify.Drift, 0, len(heads)+len(readStates))
	for _, row := range heads {
		drift = append(drift, difference(dbsqlc.ListReadStateDriftRow{
			ChannelID: row.ChannelID, What: row.What, Kept: row.Kept, Counted: row.Counted,
		}))
	}
	for _, row := range readStates {
		drift = append(drift, difference(row))
	}
	return drift
}

func difference(row dbsqlc.ListReadStateDriftRow) verify.Drift {
	return verify.Drift{
		UserID: id.User(row.UserID), ChannelID: id.Channel(row.ChannelID),
		Differences: []verify.Difference{{What: row.What, Kept: row.Kept, Counted: row.Counted}},
	}
}

func ids[ID ~int64](rows []int64) []ID {
	typed := make([]ID, len(rows))
	for i, row := range rows {
		typed[i] = ID(row)
	}
	return typed
}
