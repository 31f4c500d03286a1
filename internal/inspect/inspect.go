package inspect

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

const (
	// MaxPage bounds the badges and the people of one answer.
	MaxPage = 500
	// MaxDevices bounds the devices of a person that are told of.
	MaxDevices = 100
)

// Store is what is inspected. Its errors are faults, or internal.
type Store interface {
	// Explain returns what a person's badges are made of, of one moment: at most limit of the channels from first to last,
	// in the order of their ids, without those that they are not in. Unread and mentions are counted to countTo.
	Explain(ctx context.Context, user id.User, first, last id.Channel, limit, countTo int) ([]Explanation, error)
	// Devices returns a person's devices, the one that confirmed last first.
	Devices(ctx context.Context, user id.User, limit int) ([]Device, error)
	// People returns those of the ids that are known.
	People(ctx context.Context, users []id.User) ([]person.Person, error)
	// FindPeople returns people whose names begin with a text, whatever its case, in the order of their names.
	FindPeople(ctx context.Context, beginning string, limit int) ([]person.Person, error)
}

// Numbers are what is shown of a person beside each single badge.
type Numbers interface {
	Total(ctx context.Context, user id.User, limit int) (readstate.Total, error)
}

// Arrivals are who is newly unread to somebody.
type Arrivals interface {
	Get(ctx context.Context, user id.User, first int) (newlyunread.Shown, error)
}

// Config says what an inspector looks at. All but the last two are needed.
type Config struct {
	Store    Store
	Numbers  Numbers
	Arrivals Arrivals
	// Live tells of changes. Nil: nobody can watch.
	Live Live
	// Logger is told of each look at somebody else's state: slog.Default.
	Logger *slog.Logger
}

// Inspector explains badges.
type Inspector struct{ config Config }

// New returns an inspector.
func New(config Config) *Inspector {
	config.Logger = cmp.Or(config.Logger, slog.Default())
	return &Inspector{config}
}

// Device is an installation of an app that has confirmed something.
type Device struct {
	ID              id.Device
	LastConfirmedAt time.Time
	Channels        int // in which it holds something
}

// Inspection is one person as support sees them.
type Inspection struct {
	Person      person.Person
	Total       readstate.Total
	NewlyUnread newlyunread.Shown
	Devices     []Device
	// Badges are a page of all, muted ones too, in the order of the channels' ids.
	Badges  []Explanation
	HasNext bool
}

// Explain tells what one badge is made of: the viewer's own, or for the support role anybody's. It is NOT_FOUND where
// the person is not in the channel.
func (i *Inspector) Explain(ctx context.Context, viewer person.Viewer, user id.User, channel id.Channel, countTo int) (Explanation, error) {
	if err := readstate.CheckCap(countTo); err != nil {
		return Explanation{}, err
	}
	if user != viewer.ID {
		if err := i.enter(ctx, viewer, "explain a badge", slog.Int64("user", int64(user)), slog.Int64("channel", int64(channel))); err != nil {
			return Explanation{}, err
		}
	}
	found, err := i.config.Store.Explain(ctx, user, channel, channel, 1, countTo)
	switch {
	case err != nil:
		return Explanation{}, fmt.Errorf("explain badge: %w", err)
	case len(found) == 0:
		return Explanation{}, fault.NoChannel()
	default:
		return found[0], nil
	}
}

// Find returns people by their number or by how their name begins, for the support role.
func (i *Inspector) Find(ctx context.Context, viewer person.Viewer, text string, first int) ([]person.Person, error) {
	text = strings.TrimSpace(text)
	if err := fault.CheckRange("first", first, 1, MaxPage); err != nil {
		return nil, err
	}
	if err := fault.CheckText("search", text, 1, person.MaxNameLength); err != nil {
		return nil, err
	}
	if err := i.enter(ctx, viewer, "find people"); err != nil {
		return nil, err
	}
	found, err := i.config.Store.FindPeople(ctx, text, first)
	if err != nil {
		return nil, fmt.Errorf("find people: %w", err)
	}
	if user, err := id.ParseUser(text); err == nil {
		numbered, err := i.config.Store.People(ctx, []id.User{user})
		if err != nil {
			return nil, fmt.Errorf("find people: %w", err)
		}
		found = append(numbered, found...)
	}
	return found[:min(first, len(found))], nil
}

// Inspect tells of one person, for the support role: a page of the badges after a channel, and what is shown beside them.
func (i *Inspector) Inspect(ctx context.Context, viewer person.Viewer, user id.User, first int, after id.Channel, countTo int) (Inspection, error) {
	if err := fault.CheckRange("first", first, 1, MaxPage); err != nil {
		return Inspection{}, err
	}
	if err := readstate.CheckCap(countTo); err != nil {
		return Inspection{}, err
	}
	if err := i.enter(ctx, viewer, "inspect a person", slog.Int64("user", int64(user))); err != nil {
		return Inspection{}, err
	}
	seen, err := i.inspect(ctx, user, first, after, countTo)
	if err != nil {
		return Inspection{}, fmt.Errorf("inspect: %w", err)
	}
	return seen, nil
}

func (i *Inspector) inspect(ctx context.Context, user id.User, first int, after id.Channel, countTo int) (seen Inspection, err error) {
	known, err := i.config.Store.People(ctx, []id.User{user})
	switch {
	case err != nil:
		return seen, err
	case len(known) == 0:
		return seen, noPerson()
	}
	seen.Person = known[0]
	if after < math.MaxInt64 {
		if seen.Badges, err = i.config.Store.Explain(ctx, user, after+1, math.MaxInt64, first+1, countTo); err != nil {
			return seen, err
		}
	}
	if seen.HasNext = len(seen.Badges) > first; seen.HasNext {
		seen.Badges = seen.Badges[:first]
	}
	if seen.Devices, err = i.config.Store.Devices(ctx, user, MaxDevices); err != nil {
		return seen, err
	}
	if seen.NewlyUnread, err = i.config.Arrivals.Get(ctx, user, newlyunread.DefaultFirst); err != nil {
		return seen, err
	}
	seen.Total, err = i.config.Numbers.Total(ctx, user, countTo)
	return seen, err
}

// enter lets the support role in, and tells the log who looks at what.
func (i *Inspector) enter(ctx context.Context, viewer person.Viewer, what string, at ...slog.Attr) error {
	allowed := viewer.Role == person.RoleSupport
	at = append([]slog.Attr{slog.String("what", what), slog.Int64("viewer", int64(viewer.ID)), slog.Bool("allowed", allowed)}, at...)
	i.config.Logger.LogAttrs(ctx, slog.LevelInfo, "another person's state", at...)
	if !allowed {
		return fault.New(fault.Forbidden, "the state of others is for the support role")
	}
	return nil
}

func noPerson() error {
	return &fault.Error{Code: fault.NotFound, Argument: "userId", Message: "no such person"}
}
