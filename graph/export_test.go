package graph

import (
	"context"

	"tidemark/graph/feed"
	"tidemark/internal/live"
)

// Present is present, for what no argument of the schema can bring about today.
var Present = present

// NewHandlerOf serves another schema.
var NewHandlerOf = newHandler

// BadgeChangeEncoder returns what writes the events of the badgeChanged that ctx is about.
func (r *Resolver) BadgeChangeEncoder(ctx context.Context) feed.Encoder[live.BadgeChange] {
	return r.encoders.badgeChange(ctx)
}
