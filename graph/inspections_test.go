package graph_test

import (
	"context"

	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

func (d domain) Explain(ctx context.Context, _ person.Viewer, user id.User, channel id.Channel, _ int) (inspect.Explanation, error) {
	return inspect.Explanation{Badge: readstate.Badge{UserID: user, ChannelID: channel}, LastMovedBy: inspect.Joined}, d.failure(ctx)
}

func (d domain) Find(ctx context.Context, _ person.Viewer, _ string, first int) ([]person.Person, error) {
	return make([]person.Person, first), d.failure(ctx)
}

func (d domain) Inspect(ctx context.Context, viewer person.Viewer, user id.User, first int, _ id.Channel, limit int) (inspect.Inspection, error) {
	seen := inspect.Inspection{Badges: make([]inspect.Explanation, first)}
	for i := range seen.Badges {
		seen.Badges[i], _ = d.Explain(ctx, viewer, user, id.Channel(i+1), limit)
	}
	return seen, d.failure(ctx)
}

func (d domain) Watch(ctx context.Context, _ person.Viewer, _ id.User) (*inspect.Stream, error) {
	return nil, d.failure(ctx)
}
