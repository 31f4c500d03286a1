package replay

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/id"
	"tidemark/internal/receipt"
)

// receiptsOfRoom is of how many of a channel's messages it is compared who has read them: the newest, and some from all
// along it.
const receiptsOfRoom = 5

// Receipts is what a replay needs of package receipt.
type Receipts interface {
	Get(ctx context.Context, viewer id.User, channel id.Channel, seq id.Seq) (receipt.Receipt, error)
	List(ctx context.Context, viewer id.User, of receipt.Receipt, part receipt.Part, first int, after id.User) (receipt.Page, error)
}

// compareReceipts compares who has read some messages of each channel, and returns how many messages these are.
func (p *play) compareReceipts(ctx context.Context) (compared int, err error) {
	if p.Receipts == nil {
		return 0, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.Workers)
	for _, r := range p.rooms {
		for n := range id.Seq(receiptsOfRoom) {
			seq := r.head() - r.head()*n/receiptsOfRoom
			viewer := r.witness(seq)
			if viewer == nil || n > 0 && r.head() < receiptsOfRoom {
				continue
			}
			compared++
			group.Go(func() error { return p.compareReceipt(ctx, r, seq, viewer.actor.id) })
		}
	}
	return compared, group.Wait()
}

// witness returns somebody who may ask who has read a message, if there is anybody.
func (r *room) witness(seq id.Seq) *seat {
	for _, s := range r.seats {
		if seq > 0 && s.member && s.joined < seq {
			return s
		}
	}
	return nil
}

func (p *play) compareReceipt(ctx context.Context, r *room, seq id.Seq, viewer id.User) error {
	var readers, unread []id.User
	for user, s := range r.seats {
		switch {
		case !s.member, s.joined >= seq, user == r.at(seq).sender:
		case s.furthest >= seq:
			readers = append(readers, user)
		default:
			unread = append(unread, user)
		}
	}
	got, err := p.Receipts.Get(ctx, viewer, r.id, seq)
	if err != nil {
		return err
	}
	if got.ReadCount != len(readers) || got.AudienceCount != len(readers)+len(unread) {
		p.found.add("channel %d: message %d is read by %d of %d; want %d of %d",
			r.id, seq, got.ReadCount, got.AudienceCount, len(readers), len(readers)+len(unread))
		return nil
	}
	for part, want := range map[receipt.Part][]id.User{receipt.Readers: readers, receipt.Unread: unread} {
		page, err := p.Receipts.List(ctx, viewer, got, part, receipt.MaxPage, 0)
		if err != nil {
			return err
		}
		slices.Sort(want)
		listed := make([]id.User, len(page.People))
		for i, person := range page.People {
			listed[i] = person.ID
		}
		if !slices.Equal(listed, want[:min(len(want), receipt.MaxPage)]) {
			p.found.add("channel %d: of message %d, readers %v, are listed %v; want %v", r.id, seq, part, listed, want)
		}
	}
	return nil
}
