package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// channelsOf returns the channels of badges, in their order. Where only what badges tell themselves is asked for,
// nothing is looked up.
func (r *Resolver) channelsOf(ctx context.Context, badges []*readstate.Badge) ([]channel.Channel, error) {
	channels := make([]channel.Channel, len(badges))
	for i, b := range badges {
		channels[i] = channel.Channel{ID: b.ChannelID, HighWaterSeq: b.HighWaterSeq, VisibleAfter: b.JoinedSeq}
	}
	if toldByBadges(graphql.CollectFieldsCtx(ctx, []string{"Channel"})) {
		return channels, nil
	}
	ids := make([]id.Channel, len(badges))
	for i, b := range badges {
		ids[i] = b.ChannelID
	}
	found, err := r.Channels.GetMany(ctx, viewer(ctx), ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[id.Channel]channel.Channel, len(found))
	for _, c := range found {
		byID[c.ID] = c
	}
	missing := make(graphql.BatchErrorList, len(badges))
	var left bool // since the badges were read
	for i, b := range badges {
		c, ok := byID[b.ChannelID]
		if !ok {
			missing[i], left = fault.NoChannel(), true
		}
		c.HighWaterSeq = b.HighWaterSeq // the badge and its channel are of one moment
		channels[i] = c
	}
	if left {
		return channels, missing
	}
	return channels, nil
}

func toldByBadges(fields []graphql.CollectedField) bool {
	for _, f := range fields {
		switch f.Name {
		case "id", "highWaterSeq", "messages", "__typename":
		default:
			return false
		}
	}
	return true
}

// channelOrNull is null, and no error, for a channel that the viewer is not in.
func (r *Resolver) channelOrNull(ctx context.Context, text string) (*channel.Channel, error) {
	channelIn, err := channelArg("id", text)
	if err != nil {
		return nil, err
	}
	found, err := r.Channels.Get(ctx, viewer(ctx), channelIn)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil //nolint:nilnil // the contract: null where the viewer is not a member
	}
	return &found, err
}
