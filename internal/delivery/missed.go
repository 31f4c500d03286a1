package delivery

import (
	"context"
	"fmt"

	"tidemark/internal/channel"
	"tidemark/internal/id"
)

// maxPageBytes bounds what waits for one reader of a channel's events.
const maxPageBytes = 1 << 20

// Missed is what a reader of a channel's events lacks: all of it, a page of it with HasMore, or a Reason why it is not
// told.
type Missed struct {
	Reason Reason
	// DeletedSeqs are messages that the reader may hold, deleted after Since.
	DeletedSeqs []id.Seq
	Since       id.Seq
	// Messages are those up to UpTo, oldest first.
	Messages []channel.Message
	UpTo     id.Seq
	HasMore  bool
	// Where the channel stands, and where the reader joined it.
	JoinedSeq    id.Seq
	HighWaterSeq id.Seq
	Version      id.Seq
	StoreEpoch   string
}

// Missed returns what happened in a channel since a reader was told what they say, and where they do not say it, since
// now. It is NOT_FOUND where they are not a member.
func (d *Deliveries) Missed(ctx context.Context, user id.User, channelID id.Channel, told Held) (Missed, error) {
	if err := told.check(); err != nil {
		return Missed{}, err
	}
	state, epoch, err := d.store.SyncState(ctx, user, "", channelID)
	if err != nil {
		return Missed{}, fmt.Errorf("missed events: %w", err)
	}
	missed := Missed{
		UpTo: state.HighWaterSeq, JoinedSeq: state.JoinedSeq, HighWaterSeq: state.HighWaterSeq, Version: state.Version,
		StoreEpoch: epoch,
	}
	if told.StoreEpoch != nil && *told.StoreEpoch != epoch {
		missed.Reason = StoreChanged
		return missed, nil
	}
	if told.After == nil {
		told.After = &state.HighWaterSeq
	}
	if told.SinceVersion == nil {
		told.SinceVersion = &state.Version
	}
	known := state.merge(told)
	missed.Since = known.version
	if missed.Reason = known.resync(state, d.maxGap); missed.Reason != "" {
		return missed, nil
	}
	if missed.DeletedSeqs, missed.Reason, err = d.deletions(ctx, known, state); err != nil {
		return Missed{}, fmt.Errorf("missed events: %w", err)
	}
	if missed.Reason != "" {
		return missed, nil
	}
	if missed.Messages, err = d.store.MessagesAfter(ctx, channelID, known.seq, state.HighWaterSeq, maxPage); err != nil {
		return Missed{}, fmt.Errorf("missed events: %w", err)
	}
	missed.Messages = channel.ForAll(upToBytes(missed.Messages, maxPageBytes), user)
	if n := len(missed.Messages); n > 0 {
		missed.UpTo = missed.Messages[n-1].Seq
	}
	missed.HasMore = missed.UpTo < state.HighWaterSeq
	return missed, nil
}

// upToBytes returns the first messages, as many as their bodies fit into a size, and one at least.
func upToBytes(messages []channel.Message, size int) []channel.Message {
	for i, m := range messages {
		if size -= len(m.Body); size < 0 {
			return messages[:max(i, 1)]
		}
	}
	return messages
}
