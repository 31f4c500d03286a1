package readstate

import (
	"context"
	"fmt"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
)

// MaxPage bounds the badges of one page.
const MaxPage = 500

// lookTimeout bounds the look at a badge after a step was committed.
const lookTimeout = 3 * time.Second

// Announcer tells whoever listens what was committed. It neither waits nor fails: who misses something finds out in
// another way.
type Announcer interface {
	// BadgesRead hands on badges of one person, of one committed moment each, counted to limit.
	BadgesRead(badges []Badge, limit int)
}

// ReadStates answers for what people have read.
type ReadStates struct {
	store     Store
	announcer Announcer
}

// New returns the read states kept in store. The announcer hears of each move of a cursor; nil: nobody does.
func New(store Store, announcer Announcer) *ReadStates {
	return &ReadStates{store: store, announcer: announcer}
}

func (r *ReadStates) announce(badges []Badge, limit int) {
	if r.announcer != nil && len(badges) > 0 {
		r.announcer.BadgesRead(badges, limit)
	}
}

// Filter says which badges to list.
type Filter struct {
	OnlyUnread   bool
	IncludeMuted bool
	First        int
	After        *int64 // the Activity of the last badge of the page before
	Cap          int    // how far to count
}

// Page is a part of a person's badges, with a total that is of all of them.
type Page struct {
	Badges     []Badge
	Total      Total
	StoreEpoch string
	HasNext    bool
}

// List returns a page of a person's badges, newest activity first. Page and total are of one moment.
func (r *ReadStates) List(ctx context.Context, user id.User, filter Filter) (Page, error) {
	if err := fault.CheckRange("first", filter.First, 1, MaxPage); err != nil {
		return Page{}, err
	}
	if err := CheckCap(filter.Cap); err != nil {
		return Page{}, err
	}
	badges, epoch, err := r.store.Badges(ctx, user, filter.Cap)
	if err != nil {
		return Page{}, fmt.Errorf("list badges: %w", err)
	}
	page := Page{StoreEpoch: epoch, Badges: make([]Badge, 0, min(filter.First, len(badges)))}
	for _, b := range badges {
		page.Total.Add(b)
		switch {
		case b.Muted && !filter.IncludeMuted,
			filter.OnlyUnread && b.Countable == 0,
			filter.After != nil && b.Activity >= *filter.After:
		case len(page.Badges) == filter.First:
			page.HasNext = true
		default:
			page.Badges = append(page.Badges, b)
		}
	}
	return page, nil
}

// Total returns the sum over all of a person's channels that are not muted, counted to limit.
func (r *ReadStates) Total(ctx context.Context, user id.User, limit int) (Total, error) {
	if err := CheckCap(limit); err != nil {
		return Total{}, err
	}
	badges, _, err := r.store.Badges(ctx, user, limit)
	if err != nil {
		return Total{}, fmt.Errorf("total of badges: %w", err)
	}
	var total Total
	for _, b := range badges {
		total.Add(b)
	}
	return total, nil
}

// Badge returns one badge, counted to limit, and NOT_FOUND where the person is not in the channel.
func (r *ReadStates) Badge(ctx context.Context, user id.User, channel id.Channel, limit int) (Badge, error) {
	if err := CheckCap(limit); err != nil {
		return Badge{}, err
	}
	badges, err := r.store.BadgesOf(ctx, []Seat{{user, channel}}, limit)
	if err != nil {
		return Badge{}, fmt.Errorf("badge: %w", err)
	}
	if len(badges) == 0 {
		return Badge{}, fault.NoChannel()
	}
	return badges[0], nil
}

// SetMuted mutes or unmutes a channel for one person: a muted one is left out of the default list and of every
// total, and its own badge counts on.
func (r *ReadStates) SetMuted(ctx context.Context, user id.User, channel id.Channel, muted bool, limit int) (Badge, error) {
	if err := CheckCap(limit); err != nil {
		return Badge{}, err
	}
	if err := r.store.SetMuted(ctx, user, channel, muted); err != nil {
		return Badge{}, fmt.Errorf("set muted: %w", err)
	}
	return r.badgeAfter(ctx, user, channel, limit)
}

// badgeAfter looks at a badge after a step that may have been committed, and announces it.
func (r *ReadStates) badgeAfter(ctx context.Context, user id.User, channel id.Channel, limit int) (Badge, error) {
	ctx, cancel := afterCommit(ctx)
	defer cancel()
	badge, err := r.Badge(ctx, user, channel, limit)
	if err == nil {
		r.announce([]Badge{badge}, limit)
	}
	return badge, err
}

// afterCommit returns a context that outlives its caller: an app is often put away right after it has said what was
// read, and the person's other devices are to be told all the same.
func afterCommit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
}
