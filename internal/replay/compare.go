package replay

import (
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/progress"
	"tidemark/internal/readstate"
)

// badgePage is how many badges are listed at a time: fewer than busy people have.
const badgePage = 20

// compare compares all that was kept with what must have come of it, and returns how many badges there must be.
func (p *play) compare(ctx context.Context) (badges int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.Workers)
	var done atomic.Int64
	defer progress.Show(p.Progress, "compare", len(p.rooms)+len(p.actors), &done)()
	for _, r := range p.rooms {
		group.Go(func() error {
			defer done.Add(1)
			return p.compareMessages(ctx, r)
		})
	}
	for _, a := range p.actors {
		want, wantTotal := a.expected()
		badges += len(want)
		group.Go(func() error {
			defer done.Add(1)
			return p.compareBadges(ctx, a, want, wantTotal)
		})
	}
	return badges, group.Wait()
}

// compareMessages reads a channel back, newest first.
func (p *play) compareMessages(ctx context.Context, r *room) error {
	left := r.head()
	var before *id.Seq
	for {
		page, err := p.Channels.Messages(ctx, backend(), channel.Channel{ID: r.id}, before, channel.MaxPage)
		if err != nil {
			return err
		}
		for _, got := range slices.Backward(page) {
			if left == 0 || got.Seq != left {
				p.found.add("channel %d: a message with seq %d, want %d", r.id, got.Seq, left)
				return nil
			}
			if want := r.at(left); !want.is(got, p.Seed) {
				p.found.add("channel %d: message %d is not as line %d has it", r.id, left, want.line)
			}
			left--
		}
		if len(page) < channel.MaxPage {
			break
		}
		before = &page[0].Seq
	}
	if left > 0 {
		p.found.add("channel %d: no messages up to %d", r.id, left)
	}
	return nil
}

// is reports whether got is the message.
func (m *message) is(got channel.Message, seed uint64) bool {
	var body string
	var named []id.User
	if !m.deleted {
		body = text(seed, m.line, m.length)
		named = slices.DeleteFunc(slices.Clone(m.named), func(user id.User) bool { return user == m.sender })
	}
	return got.Sender.ID == m.sender && got.Body == body && got.Deleted == m.deleted &&
		got.MentionsEveryone == m.everyone && slices.Equal(got.Mentions, named)
}

// compareBadges lists all badges of a person, newest activity first, and asks for their total.
func (p *play) compareBadges(ctx context.Context, a *actor, want map[id.Channel]tally, wantTotal total) error {
	got := make(map[id.Channel]tally, len(want))
	filter := readstate.Filter{IncludeMuted: true, First: badgePage, Cap: readstate.MaxCap}
	for more := true; more; {
		page, err := p.ReadStates.List(ctx, a.id, filter)
		if err != nil {
			return err
		}
		p.compareTotal(a, page.Total, wantTotal)
		for _, b := range page.Badges {
			if filter.After != nil && b.Activity >= *filter.After {
				p.found.add("person %d: channel %d is listed out of order", a.id, b.ChannelID)
				return nil
			}
			filter.After = &b.Activity
			got[b.ChannelID] = tallyOf(b)
		}
		more = page.HasNext && len(page.Badges) > 0
	}
	for channelID, w := range want {
		if g := got[channelID]; g != w {
			p.found.add("person %d in channel %d: %v; want %v", a.id, channelID, g, w)
		}
		delete(got, channelID)
	}
	for channelID, g := range got {
		p.found.add("person %d in channel %d: %v; want %v", a.id, channelID, g, tally{})
	}
	t, err := p.ReadStates.Total(ctx, a.id, readstate.MaxCap)
	if err == nil {
		p.compareTotal(a, t, wantTotal)
	}
	return err
}

func (p *play) compareTotal(a *actor, t readstate.Total, want total) {
	if got := totalOf(t); got != want {
		p.found.add("person %d in total: %v; want %v", a.id, got, want)
	}
}
