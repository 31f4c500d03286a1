package graph

import (
	"context"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
)

// sendersOf returns the people who wrote, in their order.
func (r *Resolver) sendersOf(ctx context.Context, senders []*newlyunread.Sender) ([]person.Person, error) {
	users := make([]id.User, len(senders))
	for i, s := range senders {
		users[i] = s.UserID
	}
	found, err := r.People.GetMany(ctx, users)
	if err != nil {
		return nil, err
	}
	people := make([]person.Person, len(users))
	for i, user := range users {
		people[i] = found[user]
	}
	return people, nil
}
