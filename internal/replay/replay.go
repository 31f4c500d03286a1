package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

const (
	defaultWorkers    = 32
	defaultSmallGroup = 100
	// defaultPatience is longer than any hub takes to find that it has missed something.
	defaultPatience = time.Minute
	// MaxScreens bounds Screens.
	MaxScreens = 10_000
	// maxOffset leaves room for every number of a trace, and for its direct channels.
	maxOffset = 1 << 62
	// maxDetails bounds what a report tells of what is wrong; the number is always told.
	maxDetails = 20
)

// Channels is what a replay needs of package channel.
type Channels interface {
	Create(ctx context.Context, viewer person.Viewer, channel channel.New) (channel.Channel, error)
	AddMembers(ctx context.Context, viewer person.Viewer, channel id.Channel, users []id.User) (channel.Channel, error)
	RemoveMember(ctx context.Context, viewer person.Viewer, channel id.Channel, user id.User) (*channel.Channel, error)
	Send(ctx context.Context, viewer person.Viewer, draft channel.Draft, limit int) (channel.Sent, error)
	Delete(ctx context.Context, viewer person.Viewer, channel id.Channel, seq id.Seq) (channel.Message, error)
	Messages(ctx context.Context, viewer person.Viewer, channel channel.Channel, before *id.Seq, last int) ([]channel.Message, error)
}

// ReadStates is what a replay needs of package readstate.
type ReadStates interface {
	List(ctx context.Context, user id.User, filter readstate.Filter) (readstate.Page, error)
	Total(ctx context.Context, user id.User, limit int) (readstate.Total, error)
	MarkRead(ctx context.Context, user id.User, device id.Device, cursor readstate.Cursor, limit int) (readstate.Result, error)
	MarkManyRead(ctx context.Context, user id.User, device id.Device, cursors []readstate.Cursor, limit int) ([]readstate.Result, error)
	MarkUnread(ctx context.Context, user id.User, channel id.Channel, seq id.Seq, epoch *int, limit int) (readstate.Result, error)
	SetMuted(ctx context.Context, user id.User, channel id.Channel, muted bool, limit int) (readstate.Badge, error)
}

// Live is what a replay needs of package live.
type Live interface {
	Badges(ctx context.Context, user id.User, watch live.Watch) (*live.BadgeStream, error)
}

// NewlyUnread is what a replay needs of package newlyunread.
type NewlyUnread interface {
	Get(ctx context.Context, user id.User, first int) (newlyunread.Shown, error)
	Acknowledge(ctx context.Context, user id.User, asOf *newlyunread.Position, first int) (newlyunread.Shown, error)
}

// Queue tells which partitions have messages or events that have not arrived.
type Queue interface {
	Pending(ctx context.Context, partitions []newlyunread.Partition) ([]newlyunread.Partition, error)
}

// Config says what to replay, and on what.
type Config struct {
	// File is the trace, plain or gzipped. It is read twice.
	File string
	// Speed is how many times faster than it happened: from 1. Zero means as fast as can be.
	Speed float64
	// Seed decides what people do besides writing, and the words.
	Seed uint64
	// Offset is added to each number of a person or channel. None of the ids above it may be in use.
	Offset int64
	// Workers is how many acts are at work at once. Zero means 32. The store's pool should have as many connections.
	Workers int
	// Progress is shown how far the run has come: on a terminal one line that is written over, elsewhere a line every
	// few seconds. Nil means nobody is.
	Progress io.Writer

	Channels   Channels
	ReadStates ReadStates

	// Screens is how many subscribers watch meanwhile: at most 10,000. Zero means that nobody does.
	Screens int
	// Processes are where they subscribe, in turn.
	Processes []Live
	// NewlyUnread is where icons are looked at and acknowledged, while workers run. Nil means that nobody does.
	NewlyUnread NewlyUnread
	// Queue is the workers', and must be given with NewlyUnread.
	Queue Queue
	// SmallGroup is the largest group in which every message counts as newly unread. Zero means 100.
	SmallGroup int
	// Receipts is where it is looked who has read what, at the end. Nil means that nobody does.
	Receipts Receipts
	// Patience is how long screens may take at the end to show what they must, and messages to arrive at icons. Zero
	// means a minute.
	Patience time.Duration
}

func (c Config) validate() error {
	switch {
	case !(c.Speed == 0 || c.Speed >= 1): // written so that NaN fails
		return errors.New("replay: Speed must be 0, or at least 1")
	case c.Offset < 0 || c.Offset > maxOffset:
		return fmt.Errorf("replay: Offset must be from 0 to %d", int64(maxOffset))
	case c.Workers < 0:
		return errors.New("replay: Workers must not be negative")
	case c.Screens < 0 || c.Screens > MaxScreens:
		return fmt.Errorf("replay: Screens must be from 0 to %d", MaxScreens)
	case c.Screens > 0 && len(c.Processes) == 0:
		return errors.New("replay: Processes must be given where there are Screens")
	case c.NewlyUnread != nil && c.Queue == nil:
		return errors.New("replay: Queue must be given where there is NewlyUnread")
	case c.SmallGroup < 0:
		return errors.New("replay: SmallGroup must not be negative")
	case c.Patience < 0:
		return errors.New("replay: Patience must not be negative")
	}
	return nil
}

// Report says what was replayed, and what of it came out wrong.
type Report struct {
	Messages int // lines of the trace that were sent
	People   int
	Badges   int // compared
	Screens  int
	Icons    int // compared
	Receipts int // compared
	// Wrong counts badges, totals, messages, answers, screens, icons and receipts that were not what they must be.
	Wrong int
	// Details tells of the first of them.
	Details []string
}

// String sums the report up in a line.
func (r Report) String() string {
	return fmt.Sprintf("%d messages, %d people, %d badges, %d screens, %d icons, %d wrong",
		r.Messages, r.People, r.Badges, r.Screens, r.Icons, r.Wrong)
}

// Run replays a trace and compares what came of it. A trace that is none is an error before anything is done, with
// the file and the line; an act that the service refuses is one with the line it came after. The report that comes
// with an error tells what was found until then.
func Run(ctx context.Context, config Config) (Report, error) {
	if err := config.validate(); err != nil {
		return Report{}, err
	}
	config.Workers = cmp.Or(config.Workers, defaultWorkers)
	config.SmallGroup = cmp.Or(config.SmallGroup, defaultSmallGroup)
	config.Patience = cmp.Or(config.Patience, defaultPatience)
	cast, err := newCast(readFile(config.File))
	if err != nil {
		return Report{}, fmt.Errorf("replay: %w", err)
	}
	p := newPlay(config)
	defer func() { p.audience.close() }()
	var badges, icons, receipts int
	if err = p.perform(ctx, cast, readFile(config.File)); err == nil {
		err = p.settle(ctx)
	}
	if err == nil {
		icons, err = p.compareIcons(ctx)
	}
	if err == nil {
		badges, err = p.compare(ctx)
	}
	if err == nil {
		receipts, err = p.compareReceipts(ctx)
	}
	report := Report{
		Messages: int(p.sent.Load()), People: len(p.actors), Badges: badges, Screens: len(p.audience), Icons: icons, Receipts: receipts,
		Wrong: p.found.wrong, Details: p.found.details,
	}
	if err != nil {
		return report, fmt.Errorf("replay: %w", err)
	}
	return report, nil
}

// findings collects what is wrong.
type findings struct {
	mu      sync.Mutex
	wrong   int
	details []string
}

func (f *findings) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong++
	if len(f.details) < maxDetails {
		f.details = append(f.details, fmt.Sprintf(format, args...))
	}
}
