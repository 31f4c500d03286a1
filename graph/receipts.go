package graph

import (
	"context"

	"tidemark/graph/connection"
	"tidemark/internal/person"
	"tidemark/internal/receipt"
)

// audienceOf returns a page of one part of a message's audience.
func (r *Resolver) audienceOf(ctx context.Context, of receipt.Receipt, part receipt.Part, first int, after *string) (connection.Users, error) {
	from, err := connection.AfterUser(after)
	if err != nil {
		return connection.Users{}, err
	}
	page, err := r.Receipts.List(ctx, viewer(ctx).ID, of, part, first, from)
	return connection.NewUsers(page.People, after != nil, page.HasNext), err
}

// setSharing has the viewer share receipts or not.
func (r *Resolver) setSharing(ctx context.Context, share bool) (person.Viewer, error) {
	v := viewer(ctx)
	return v, r.Receipts.SetSharing(ctx, v.ID, share)
}
