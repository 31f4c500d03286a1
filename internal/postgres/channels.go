package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres/internal/dbsqlc"
)

// directPairOnce is the constraint that two people have one direct channel.
const directPairOnce = "channel_direct_pair_once"

// idTries bounds how many ids in a row may be such as a product gave out itself, where we are to give one out.
const idTries = 100

// errIDTaken says that an id given out by the sequence is in use.
var errIDTaken = errors.New("channel id is taken")

// CreateChannel implements channel.Store.
func (s *Store) CreateChannel(ctx context.Context, channelToMake channel.New) (id.Channel, error) {
	for range idTries {
		made, err := s.createChannel(ctx, channelToMake)
		switch {
		case violates(err, directPairOnce): // somebody else made it since we looked
			continue
		case errors.Is(err, errIDTaken) && channelToMake.ID == 0:
			continue
		case errors.Is(err, errIDTaken):
			return 0, &fault.Error{Code: fault.Conflict, Argument: "input.id", Message: "input.id is in use already"}
		default:
			return made, err
		}
	}
	return 0, fmt.Errorf("no free id or pair after %d tries", idTries)
}

func (s *Store) createChannel(ctx context.Context, c channel.New) (made id.Channel, err error) {
	params := dbsqlc.InsertChannelParams{Kind: string(c.Kind), Name: c.Name}
	if c.ID != 0 {
		params.ID = (*int64)(&c.ID)
	}
	if c.CreatorID != 0 {
		params.CreatorID = (*int64)(&c.CreatorID)
	}
	if c.Kind == channel.Direct {
		params.DirectLow, params.DirectHigh = (*int64)(&c.Members[0]), (*int64)(&c.Members[1])
		if made, err := s.directChannel(ctx, params); err != nil || made != 0 {
			return made, err
		}
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		channelID, err := s.q.InsertChannel(ctx, tx, params)
		if noRows(err) {
			return errIDTaken
		}
		if err != nil {
			return err
		}
		made = id.Channel(channelID)
		if err := s.q.InsertChannelHead(ctx, tx, channelID, int32(len(c.Members))); err != nil { //nolint:gosec // at most 1,001
			return err
		}
		_, err = s.join(ctx, tx, made, 0, c.Members)
		return err
	})
	if errors.Is(err, errIDTaken) && c.Kind == channel.Direct { // perhaps by this very pair, since we looked
		if made, lookErr := s.directChannel(ctx, params); lookErr != nil || made != 0 {
			return made, lookErr
		}
	}
	return made, err
}

// directChannel returns the direct channel of two people, and 0 where there is none.
func (s *Store) directChannel(ctx context.Context, pair dbsqlc.InsertChannelParams) (id.Channel, error) {
	existing, err := s.q.GetDirectChannel(ctx, s.pool, *pair.DirectLow, *pair.DirectHigh)
	if noRows(err) {
		return 0, nil
	}
	return id.Channel(existing), translate(err)
}

// Channels implements channel.Store.
func (s *Store) Channels(ctx context.Context, user id.User, channels []id.Channel) ([]channel.Channel, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListChannelsRow, error) {
		return s.q.ListChannels(ctx, s.pool, int64(user), int64s(channels))
	})
	if err != nil {
		return nil, err
	}
	seen := make([]channel.Channel, len(rows))
	for i, row := range rows {
		seen[i] = seenChannel(row)
	}
	return seen, nil
}

// Channel implements channel.Store.
func (s *Store) Channel(ctx context.Context, channelID id.Channel) (channel.Channel, error) {
	row, err := s.q.GetChannel(ctx, s.pool, int64(channelID))
	if noRows(err) {
		return channel.Channel{}, fault.NoChannel()
	}
	return seenChannel(dbsqlc.ListChannelsRow(row)), translate(err)
}

// Members implements channel.Store.
func (s *Store) Members(ctx context.Context, channelID id.Channel, after id.User, limit int) ([]person.Person, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListMembersRow, error) {
		return s.q.ListMembers(ctx, s.pool, dbsqlc.ListMembersParams{
			ChannelID: int64(channelID), After: int64(after), PageSize: int32(limit), //nolint:gosec // a page
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

// LockHead implements channel.Store.
func (s *Store) LockHead(ctx context.Context, channelID id.Channel, change func(channel.Head) error) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		row, err := s.q.LockChannelHead(ctx, tx, int64(channelID))
		if noRows(err) {
			return fault.NoChannel()
		}
		if err != nil {
			return err
		}
		h := &head{store: s, tx: tx, channel: channelID, membersEver: row.MembersEver}
		h.info.Kind = channel.Kind(row.Kind)
		if row.CreatorID != nil {
			h.info.CreatorID = id.User(*row.CreatorID)
		}
		return change(h)
	})
}

// head is a locked channel_head in its transaction.
type head struct {
	store       *Store
	tx          pgx.Tx
	channel     id.Channel
	membersEver int32
	info        channel.HeadInfo
}

func (h *head) Info() channel.HeadInfo { return h.info }

func (h *head) Joined(ctx context.Context, user id.User) (id.Seq, bool, error) {
	joined, err := h.store.q.GetJoinedSeq(ctx, h.tx, int64(user), int64(h.channel))
	if noRows(err) {
		return 0, false, nil
	}
	return id.Seq(joined), err == nil, err
}

func (h *head) Join(ctx context.Context, users []id.User) (change channel.Change, err error) {
	joining, err := h.store.q.ListNotMembers(ctx, h.tx, int64s(users), int64(h.channel))
	if err != nil || len(joining) == 0 {
		return change, err
	}
	newcomers := make([]id.User, len(joining))
	for i, user := range joining {
		newcomers[i] = id.User(user)
	}
	joined, err := h.store.join(ctx, h.tx, h.channel, h.membersEver, newcomers)
	if err != nil {
		return change, err
	}
	version, err := h.store.q.ChangeMemberCount(ctx, h.tx, dbsqlc.ChangeMemberCountParams{
		Change: joined.Joined, Newcomers: joined.Newcomers, ChannelID: int64(h.channel),
	})
	return channel.Change{ChannelID: h.channel, Version: id.Seq(version), Joined: newcomers}, err
}

func (h *head) Leave(ctx context.Context, user id.User) (change channel.Change, err error) {
	if err := h.store.flushOutbox(ctx, h.tx, user, h.channel, true); err != nil {
		return change, err
	}
	left, err := h.store.q.LeaveChannel(ctx, h.tx, int64(user), int64(h.channel))
	if err != nil || left == 0 {
		return change, err
	}
	version, err := h.store.q.ChangeMemberCount(ctx, h.tx, dbsqlc.ChangeMemberCountParams{Change: -1, ChannelID: int64(h.channel)})
	return channel.Change{ChannelID: h.channel, Version: id.Seq(version), Left: []id.User{user}}, err
}

func (h *head) Message(ctx context.Context, seq id.Seq) (channel.Message, error) {
	row, err := h.store.q.GetMessage(ctx, h.tx, int64(h.channel), int64(seq))
	if noRows(err) {
		return channel.Message{}, fault.NoMessage()
	}
	return message(row), err
}

func (h *head) Delete(ctx context.Context, seq id.Seq) (id.Seq, error) {
	version, err := h.store.q.DeleteMessage(ctx, h.tx, int64(h.channel), int64(seq))
	if noRows(err) { // it was deleted before
		return 0, nil
	}
	return id.Seq(version), err
}

// join makes people members at the head, and known if they were not. They come in ascending order, and those who were
// never in the channel get the indexes from firstIndex on.
func (s *Store) join(ctx context.Context, tx pgx.Tx, channelID id.Channel, firstIndex int32, users []id.User) (dbsqlc.JoinChannelRow, error) {
	ids := int64s(users)
	if err := s.q.EnsureUsers(ctx, tx, ids); err != nil {
		return dbsqlc.JoinChannelRow{}, err
	}
	return s.q.JoinChannel(ctx, tx, dbsqlc.JoinChannelParams{
		ChannelID: int64(channelID), MembersEver: firstIndex, UserIDs: ids,
	})
}

func seenChannel(row dbsqlc.ListChannelsRow) channel.Channel {
	seen := channel.Channel{
		ID:           id.Channel(row.ID),
		Kind:         channel.Kind(row.Kind),
		Name:         row.Name,
		MemberCount:  int(row.MemberCount),
		HighWaterSeq: id.Seq(row.HighWaterSeq),
		VisibleAfter: id.Seq(row.JoinedSeq),
	}
	if row.PeerShares {
		seen.PeerReadSeq = (*id.Seq)(&row.PeerReadSeq)
	}
	if seen.Kind == channel.Direct {
		seen.Name = person.Called(id.User(row.OtherID), row.OtherName).DisplayName
	}
	return seen
}
