package replay

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/progress"
)

// play is one run: it follows the trace, decides what people do, and keeps what must come of it. Its fields are for
// the one goroutine that follows; acts see what they were given.
type play struct {
	Config
	stage *stage
	rng   *rand.Rand
	found *findings
	sent  atomic.Int64 // lines whose message is sent

	actors  []*actor
	byID    map[id.User]*actor
	rooms   []*room
	groups  map[int64]*room // by the trace's number
	directs map[[2]id.User]*room
	lastID  id.Channel // the largest given to a channel
	away    []*seat    // those who left; some may be back

	audience audience
	icons    icons
}

func newPlay(config Config) *play {
	return &play{
		Config: config,
		rng:    rand.New(rand.NewPCG(config.Seed, 0)), //nolint:gosec // it must be repeatable, not secret
		found:  &findings{},
		icons:  newIcons(config.Seed),
		byID:   map[id.User]*actor{}, groups: map[int64]*room{}, directs: map[[2]id.User]*room{},
	}
}

// perform follows the trace while the audience watches, and returns when all that came of it is done.
func (p *play) perform(ctx context.Context, c cast, lines iter.Seq2[line, error]) error {
	defer progress.Show(p.Progress, "replay", c.lines, &p.sent)()
	watching, ctx := errgroup.WithContext(ctx)
	p.stage, ctx = newStage(ctx, p.Workers) // which ends with the last act, and so does watching
	p.open(ctx, c)
	p.audience = p.gather(c)
	for _, s := range p.audience {
		watching.Go(func() error { return s.attend(ctx) })
	}
	err := p.stage.end(p.follow(ctx, c, lines))
	if failed := watching.Wait(); failed != nil {
		return failed
	}
	return err
}

// open makes the channels of the trace, with all who ever write or are named in them.
func (p *play) open(ctx context.Context, c cast) {
	p.stage.place = p.File
	for _, number := range slices.Sorted(maps.Keys(c.members)) {
		r := p.addRoom(channel.Group, id.Channel(p.Offset+number))
		p.groups[number] = r
		for _, member := range slices.Sorted(maps.Keys(c.members[number])) {
			r.admit(p.actor(member))
		}
		p.create(ctx, r)
	}
}

func (p *play) follow(ctx context.Context, c cast, lines iter.Seq2[line, error]) error {
	start := time.Now()
	for l, err := range lines {
		if err != nil {
			return err
		}
		if err := p.await(ctx, start, l.at); err != nil {
			return err
		}
		p.stage.place = fmt.Sprintf("%s:%d", p.File, l.number)
		sender := p.groupSeat(l)
		if sender == nil {
			return fmt.Errorf("%s: the file has changed since it was read first", p.stage.place)
		}
		p.say(ctx, sender, l)
		p.live(ctx, sender)
		if err := p.tend(ctx, c.lines); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the moment at which a line is due.
func (p *play) await(ctx context.Context, start time.Time, at time.Duration) error {
	if p.Speed == 0 {
		return context.Cause(ctx)
	}
	due := time.NewTimer(time.Until(start.Add(time.Duration(float64(at) / p.Speed))))
	defer due.Stop()
	select {
	case <-due.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// say sends what a line says, in its channel and to whom it answers.
func (p *play) say(ctx context.Context, sender *seat, l line) {
	switch {
	case !sender.member:
		p.comeBack(ctx, sender)
	case p.oneIn(readingFirst):
		p.read(ctx, sender.actor, []*seat{sender})
	}
	named := make([]id.User, len(l.mentions))
	for i, number := range l.mentions {
		named[i] = p.user(number)
	}
	p.send(ctx, sender, message{line: l.number, length: l.length, named: named, everyone: l.everyone})
	for _, user := range named {
		if a := p.byID[user]; a != nil && p.oneIn(answering) {
			p.look(ctx, a)
		}
	}
	if l.replyTo == 0 {
		return
	}
	other := p.actor(l.replyTo)
	p.send(ctx, p.directSeat(ctx, sender.actor, other), message{line: l.number, length: l.length})
	if p.oneIn(answering) {
		p.look(ctx, other)
	}
}

// actor returns somebody by the trace's number.
func (p *play) actor(number int64) *actor {
	user := p.user(number)
	a := p.byID[user]
	if a == nil {
		a = &actor{id: user}
		p.byID[user] = a
		p.actors = append(p.actors, a)
	}
	return a
}

func (p *play) user(number int64) id.User { return id.User(p.Offset + number) }

// groupSeat returns where the sender of a line sits, and nil where the first reading has not seen them there.
func (p *play) groupSeat(l line) *seat {
	if r := p.groups[l.channel]; r != nil {
		return r.seats[p.user(l.sender)]
	}
	return nil
}

// directSeat returns where a person sits in their direct channel with another. It is made when it is first needed.
func (p *play) directSeat(ctx context.Context, a, other *actor) *seat {
	pair := [2]id.User{min(a.id, other.id), max(a.id, other.id)}
	r := p.directs[pair]
	if r == nil {
		r = p.addRoom(channel.Direct, p.lastID+1)
		p.directs[pair] = r
		r.admit(a)
		r.admit(other)
		p.create(ctx, r)
	}
	return r.seats[a.id]
}

func (p *play) addRoom(kind channel.Kind, channelID id.Channel) *room {
	r := &room{id: channelID, kind: kind, seats: map[id.User]*seat{}}
	p.rooms = append(p.rooms, r)
	p.lastID = max(p.lastID, channelID)
	return r
}

func (p *play) oneIn(n int) bool { return p.rng.IntN(n) == 0 }
