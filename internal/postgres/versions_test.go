package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// Whoever holds copies of a badge keeps the one with the larger version. So all badges of one version are the same, and
// an answer is never older than what was shown before the call, whatever happens meanwhile.
func TestOneVersionIsOneBadge(t *testing.T) {
	t.Parallel()
	const devices, steps = 6, 200
	d := newDomain(t)
	group := d.group(anna, ben)
	seen := badges{byVersion: make(map[id.Seq]readstate.Badge)}
	var devicesAtWork, others errgroup.Group
	for range devices {
		devicesAtWork.Go(func() error {
			var newest id.Seq
			for range steps {
				badge, err := d.anyBadge(ben, group)
				if err != nil {
					return err
				}
				if badge.Version() < newest {
					return fmt.Errorf("version %d is shown after %d", badge.Version(), newest)
				}
				newest = badge.Version()
				if err := seen.add(badge); err != nil {
					return err
				}
			}
			return nil
		})
	}
	over := make(chan struct{})
	others.Go(func() error {
		for n := id.User(0); ; n++ {
			select {
			case <-over:
				return nil
			default:
			}
			sent, err := d.trySend(t.Context(), anna, group, "")
			if err != nil {
				return err
			}
			if n%3 == 0 {
				_, err = d.channels.Delete(t.Context(), person.Viewer{ID: anna}, group, sent.Message.Seq)
			}
			if n%5 == 0 && err == nil {
				_, err = d.channels.AddMembers(t.Context(), person.Viewer{ID: anna}, group, []id.User{cleo + n})
			}
			if err != nil {
				return err
			}
		}
	})
	err := devicesAtWork.Wait()
	close(over)
	if err != nil {
		t.Error(err)
	}
	if err := others.Wait(); err != nil {
		t.Error(err)
	}
}

// anyBadge does one of the things that are answered with a badge.
func (d *domain) anyBadge(who id.User, of id.Channel) (readstate.Badge, error) {
	ctx := d.t.Context()
	var result readstate.Result
	var err error
	switch rand.IntN(7) {
	case 0:
		sent, err := d.channels.Send(ctx, person.Viewer{ID: who}, channel.Draft{ChannelID: of}, readstate.MaxCap)
		return sent.Badge, err
	case 1:
		return d.readStates.SetMuted(ctx, who, of, rand.IntN(2) == 0, readstate.MaxCap)
	case 2:
		page, err := d.readStates.List(ctx, who, readstate.Filter{IncludeMuted: true, First: 1, Cap: readstate.MaxCap})
		if err != nil {
			return readstate.Badge{}, err
		}
		return page.Badges[0], nil
	case 3:
		result, err = d.readStates.MarkUnread(ctx, who, of, id.Seq(rand.IntN(50)), nil, readstate.MaxCap)
	case 4:
		return d.readStates.Badge(ctx, who, of, readstate.MaxCap)
	default:
		upTo := id.MaxSeq
		if rand.IntN(2) == 0 {
			upTo = id.Seq(rand.IntN(300))
		}
		result, err = d.readStates.MarkRead(ctx, who, "", readstate.Cursor{ChannelID: of, UpToSeq: upTo}, readstate.MaxCap)
	}
	if err != nil {
		return readstate.Badge{}, err
	}
	return *result.Badge, nil
}

// badges holds every badge that was shown.
type badges struct {
	mu        sync.Mutex
	byVersion map[id.Seq]readstate.Badge
}

func (b *badges) add(badge readstate.Badge) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if there, ok := b.byVersion[badge.Version()]; ok && there != badge {
		return fmt.Errorf("two badges of one version: %+v and %+v", there, badge)
	}
	b.byVersion[badge.Version()] = badge
	return nil
}
