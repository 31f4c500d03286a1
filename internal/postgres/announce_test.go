package postgres_test

import (
	"context"
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
)

// announced keeps what it is told.
type announced struct{ badges []readstate.Badge }

func (a *announced) BadgesRead(badges []readstate.Badge, _ int) {
	a.badges = append(a.badges, badges...)
}

// An app is put away right after it has said what was read. The person's other devices are told all the same.
func TestAMoveIsAnnouncedAfterItsCallerHasGone(t *testing.T) {
	t.Parallel()
	for query, move := range map[string]func(context.Context, *readstate.ReadStates, id.Channel) error{
		"AdvanceReadStates": func(ctx context.Context, r *readstate.ReadStates, group id.Channel) error {
			_, err := r.MarkRead(ctx, ben, "", readstate.Cursor{ChannelID: group, UpToSeq: 1}, 99)
			return err
		},
		"RetreatReadState": func(ctx context.Context, r *readstate.ReadStates, group id.Channel) error {
			_, err := r.MarkUnread(ctx, ben, group, 1, nil, 99)
			return err
		},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			url := pgtest.NewDatabase(t)
			before := openDomain(t, postgres.Config{URL: url})
			group := before.group(anna, ben)
			before.send(anna, group)
			ctx, goAway := context.WithCancel(t.Context())
			d := openDomain(t, postgres.Config{URL: url, Tracer: afterFirst(query, goAway)})
			var told announced
			_ = move(ctx, readstate.New(d.store, &told), group) // nobody waits for its answer
			if want := before.badge(ben, group); len(told.badges) != 1 || told.badges[0] != want {
				t.Errorf("announced %+v, want %+v", told.badges, want)
			}
		})
	}
}
