package newlyunread

import (
	"context"

	"tidemark/internal/id"
)

// Presence knows who is connected.
type Presence interface {
	// Online returns those of the users who are known to be connected. It never takes long: of whom that is not known
	// within moments counts as away.
	Online(ctx context.Context, users []id.User) []id.User
}

// RollCall says who was asked about before a batch, and who of them is connected. The zero call has everything stored.
type RollCall struct {
	// Asked are those to whom messages are taken; others have come between and wait for the next batch. Nil: everybody.
	Asked []id.User
	// Online are those to whom messages are taken and not stored.
	Online []id.User
}

// project stores the oldest events of a partition. If it matters, it asks before who is connected.
func (w *Worker) project(ctx context.Context, lease Lease, batch int) (Done, error) {
	if w.Presence == nil {
		return w.Queue.Project(ctx, lease, batch, RollCall{})
	}
	asked, err := w.Queue.Recipients(ctx, lease.Partition, batch)
	if err != nil {
		return Done{}, err
	}
	return w.Queue.Project(ctx, lease, batch, RollCall{Asked: asked, Online: w.Presence.Online(ctx, asked)})
}
