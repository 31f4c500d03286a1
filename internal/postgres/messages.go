package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres/internal/dbsqlc"
	"tidemark/internal/readstate"
)

// clientMessageIDOnce is the constraint that makes a retry of a send fail, head and all.
const clientMessageIDOnce = "message_client_message_id_once"

// Send implements channel.Store. It is one statement, so that the head's lock is held for no round trip.
func (s *Store) Send(ctx context.Context, sender id.User, draft channel.Draft) (channel.Sent, error) {
	params := dbsqlc.SendMessageParams{
		MentionsEveryone: draft.MentionsEveryone,
		ChannelID:        int64(draft.ChannelID),
		SenderID:         int64(sender),
		Mentions:         int64s(draft.Mentions),
		Body:             draft.Body,
	}
	send := func() (dbsqlc.SendMessageRow, error) {
		row, err := s.q.SendMessage(ctx, s.pool, params)
		return row, translate(err)
	}
	if draft.ClientMessageID != "" {
		params.ClientMessageID = &draft.ClientMessageID
		sendOnce := send
		send = func() (dbsqlc.SendMessageRow, error) { return again(ctx, s, sendOnce) }
	}
	row, err := send()
	switch {
	case violates(err, clientMessageIDOnce):
		return channel.Sent{}, channel.ErrClientMessageIDUsed
	case noRows(err), removedMeanwhile(err):
		return channel.Sent{}, fault.NoChannel()
	case err != nil:
		return channel.Sent{}, err
	}
	return channel.Sent{
		Message: channel.Message{
			ID:               id.Message(row.ID),
			ChannelID:        draft.ChannelID,
			Seq:              id.Seq(row.Seq),
			Sender:           person.Called(sender, row.SenderName),
			Body:             draft.Body,
			CreatedAt:        row.CreatedAt,
			ClientMessageID:  params.ClientMessageID,
			Mentions:         draft.Mentions,
			MentionsEveryone: draft.MentionsEveryone,
		},
		Badge: readstate.Badge{
			UserID:       sender,
			ChannelID:    draft.ChannelID,
			HeadVersion:  id.Seq(row.HeadVersion),
			StateVersion: id.Seq(row.ReadStateVersion),
			HighWaterSeq: id.Seq(row.Seq),
			LastReadSeq:  id.Seq(row.Seq),
			JoinedSeq:    id.Seq(row.JoinedSeq),
			ReadEpoch:    int(row.ReadEpoch),
			Muted:        row.Muted,
			Activity:     row.ID,
			ReceiptSeq:   id.Seq(row.Seq),
			MemberIndex:  int(row.MemberIndex),
		},
	}, nil
}

// MessageByClientID implements channel.Store.
func (s *Store) MessageByClientID(ctx context.Context, sender id.User, channelID id.Channel, clientID string) (channel.Message, error) {
	row, err := again(ctx, s, func() (dbsqlc.GetMessageByClientIDRow, error) {
		return s.q.GetMessageByClientID(ctx, s.pool, dbsqlc.GetMessageByClientIDParams{
			ChannelID: int64(channelID), SenderID: int64(sender), ClientMessageID: clientID,
		})
	})
	return message(dbsqlc.GetMessageRow(row)), err
}

// MessagesAfter implements delivery.Store.
func (s *Store) MessagesAfter(ctx context.Context, channelID id.Channel, after, upTo id.Seq, limit int) ([]channel.Message, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListMessagesAfterRow, error) {
		return s.q.ListMessagesAfter(ctx, s.pool, dbsqlc.ListMessagesAfterParams{
			ChannelID: int64(channelID), After: int64(after), UpTo: int64(upTo), PageSize: int32(limit), //nolint:gosec // a page
		})
	})
	if err != nil {
		return nil, err
	}
	messages := make([]channel.Message, len(rows))
	for i, row := range rows {
		messages[i] = message(dbsqlc.GetMessageRow(row))
	}
	return messages, nil
}

// MessagesBefore implements channel.Store and delivery.Store.
func (s *Store) MessagesBefore(ctx context.Context, channelID id.Channel, after, before id.Seq, limit int) ([]channel.Message, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListMessagesBeforeRow, error) {
		return s.q.ListMessagesBefore(ctx, s.pool, dbsqlc.ListMessagesBeforeParams{
			ChannelID: int64(channelID), After: int64(after), Before: int64(before), PageSize: int32(limit), //nolint:gosec // a page
		})
	})
	if err != nil {
		return nil, err
	}
	messages := make([]channel.Message, len(rows))
	for i, row := range rows {
		messages[i] = message(dbsqlc.GetMessageRow(row))
	}
	slices.Reverse(messages)
	return messages, nil
}

func message(row dbsqlc.GetMessageRow) channel.Message {
	mentions := make([]id.User, len(row.Mentions))
	for i, user := range row.Mentions {
		mentions[i] = id.User(user)
	}
	return channel.Message{
		ID:               id.Message(row.ID),
		ChannelID:        id.Channel(row.ChannelID),
		Seq:              id.Seq(row.Seq),
		Sender:           person.Called(id.User(row.SenderID), row.SenderName),
		Body:             row.Body,
		CreatedAt:        row.CreatedAt,
		Deleted:          row.DeletedVersion > 0,
		ClientMessageID:  row.ClientMessageID,
		Mentions:         mentions,
		MentionsEveryone: row.MentionsEveryone,
	}
}

// removedMeanwhile reports whether the sender was removed while the send waited for the head.
func removedMeanwhile(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == notNullViolation && pg.TableName == "message" && pg.ColumnName == "sender_id"
}
