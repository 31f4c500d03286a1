package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/progress"
)

// How often something about icons happens: once in so many lines or chances, on the average.
const (
	glancing      = 10 // somebody looks at their icon
	acknowledging = 2  // they acknowledge it then, or what they saw some time ago
	lookingBack   = 2  // they acknowledge what they saw some time ago
	sayingNothing = 5  // they acknowledge without saying what they saw
	overstating   = 5  // a client says that they saw what is yet to come
	openingAtRest = 2  // somebody acknowledges while all is at rest
	lateAtRest    = 3  // that is what they saw some time ago
	restsOfATrace = 8  // how often all comes to rest in a trace
)

const (
	// iconCap is how far senders are counted.
	iconCap = 99
	// farAhead is a position that is never given out.
	farAhead newlyunread.Position = 1 << 62
	// lastPartition is the last of recipients' partitions. They begin at 0, and one before is that of all messages.
	lastPartition newlyunread.Partition = 63
	// idlePoll is how often to look whether all messages have arrived.
	idlePoll = 5 * time.Millisecond
)

// span is when something was done, in ticks of one clock for the whole play: if one ends before another begins, it was
// done before.
type span struct{ begin, end int64 }

// icon is what a person saw of theirs, and what they acknowledged, in the order in which it was begun.
type icon struct {
	glances         []*glance
	acknowledgments []*acknowledgment
}

// glance is what an icon showed. Its act fills it in.
type glance struct {
	span
	idle    int64 // before it began; what was answered before that had arrived
	asOf    newlyunread.Position
	senders []id.User // newest first, newlyunread.MaxFirst at most
	ever    bool      // somebody has acknowledged, it says
	seen    act
}

// acknowledgment is one that was sent. Its act fills it in.
type acknowledgment struct {
	span
	idle int64
	of   *glance // nil: it says nothing, or too much
}

// coversBefore is when at the latest that was sent which is covered surely: it had arrived.
func (k *acknowledgment) coversBefore() int64 {
	if k.of != nil {
		return k.of.idle
	}
	return k.idle
}

// coversUntil is when at the latest that was begun which may be covered: what comes later has a larger position.
func (k *acknowledgment) coversUntil() int64 {
	if k.of != nil {
		return k.of.end
	}
	return k.end
}

// icons are all that is to do with newly unread in a play. What people do else does not follow from its dice.
type icons struct {
	rng   *rand.Rand
	clock atomic.Int64
	idle  []int64 // when all that had been answered had arrived, in ascending order
	tired bool    // it never came to that within patience, and is not waited for again
}

func newIcons(seed uint64) icons {
	return icons{rng: rand.New(rand.NewPCG(seed, 2))} //nolint:gosec // it must be repeatable, not secret
}

func (ic *icons) oneIn(n int) bool { return ic.rng.IntN(n) == 0 }

// time notes when something is done.
func (ic *icons) time(s *span, do func() error) error {
	s.begin = ic.clock.Add(1)
	err := do()
	s.end = ic.clock.Add(1)
	return err
}

func (ic *icons) lastIdle() int64 {
	if len(ic.idle) == 0 {
		return 0
	}
	return ic.idle[len(ic.idle)-1]
}

// acknowledges reports whether a person ever does: half of them never do, so that all who ever wrote to them must be
// shown at the end. hastily is whether they also do while others write.
func (a *actor) acknowledges() (ever, hastily bool) { return a.id%4 >= 2, a.id%4 == 3 }

// tend has people look at their icons and acknowledge, and all come to rest now and then.
func (p *play) tend(ctx context.Context, lines int) error {
	if p.NewlyUnread == nil {
		return nil
	}
	if p.icons.oneIn(glancing) {
		a := p.actors[p.icons.rng.IntN(len(p.actors))]
		g := p.glance(ctx, a)
		if _, hastily := a.acknowledges(); hastily && p.icons.oneIn(acknowledging) {
			p.acknowledge(ctx, a, g)
		}
	}
	if p.icons.oneIn(max(1, lines/restsOfATrace)) {
		return p.rest(ctx)
	}
	return nil
}

// glance begins a look at a person's icon.
func (p *play) glance(ctx context.Context, a *actor, before ...act) *glance {
	g := &glance{idle: p.icons.lastIdle()}
	a.icon.glances = append(a.icon.glances, g)
	g.seen = p.stage.begin(ctx, func(ctx context.Context) error { return p.see(ctx, a, g) }, before...)
	return g
}

// see fills a glance in.
func (p *play) see(ctx context.Context, a *actor, g *glance) error {
	return p.icons.time(&g.span, func() error {
		shown, err := p.NewlyUnread.Get(ctx, a.id, newlyunread.MaxFirst)
		if err != nil {
			return err
		}
		p.inspect(a, shown)
		g.asOf, g.ever = shown.AsOf, shown.AcknowledgedAt != nil
		for _, s := range shown.Senders {
			g.senders = append(g.senders, s.UserID)
		}
		return nil
	})
}

// acknowledge begins an acknowledge of what a person sees, saw some time ago, or does not say.
func (p *play) acknowledge(ctx context.Context, a *actor, g *glance) {
	k := &acknowledgment{idle: p.icons.lastIdle(), of: g}
	var asOf *newlyunread.Position
	switch {
	case p.icons.oneIn(sayingNothing):
		k.of = nil
	case p.icons.oneIn(overstating):
		k.of, asOf = nil, new(farAhead)
	case p.icons.oneIn(lookingBack):
		k.of = p.earlier(a)
	}
	p.sendAcknowledgment(ctx, a, k, asOf)
}

// earlier returns what a person saw some time ago, or sees now.
func (p *play) earlier(a *actor) *glance {
	return a.icon.glances[p.icons.rng.IntN(len(a.icon.glances))]
}

// sendAcknowledgment begins to send one, with the position of what it is of, or asOf.
func (p *play) sendAcknowledgment(ctx context.Context, a *actor, k *acknowledgment, asOf *newlyunread.Position) act {
	a.icon.acknowledgments = append(a.icon.acknowledgments, k)
	var seen act
	if k.of != nil {
		seen = k.of.seen
	}
	return p.stage.begin(ctx, func(ctx context.Context) error {
		if k.of != nil {
			asOf = &k.of.asOf
		}
		shown, err := p.confirm(ctx, a, k, asOf)
		if err == nil {
			p.inspect(a, shown)
		}
		return err
	}, seen)
}

// confirm fills an acknowledgment in.
func (p *play) confirm(ctx context.Context, a *actor, k *acknowledgment, asOf *newlyunread.Position) (shown newlyunread.Shown, err error) {
	err = p.icons.time(&k.span, func() error {
		shown, err = p.NewlyUnread.Acknowledge(ctx, a.id, asOf, newlyunread.MaxFirst)
		return err
	})
	return shown, err
}

// rest waits until all that was sent has arrived, and has some people look and acknowledge then, before anybody writes
// again. What that covers is known exactly, however the workers run: all that was sent before, and nothing else.
func (p *play) rest(ctx context.Context) error {
	for _, r := range p.rooms {
		if err := after(ctx, r.turn); err != nil {
			return err
		}
	}
	if err := p.arrive(ctx); err != nil || p.icons.tired {
		return err
	}
	var seen []act
	for _, a := range p.actors {
		if ever, _ := a.acknowledges(); ever && p.icons.oneIn(openingAtRest) {
			if p.icons.oneIn(lateAtRest) && len(a.icon.glances) > 0 {
				late := p.sendAcknowledgment(ctx, a, &acknowledgment{idle: p.icons.lastIdle(), of: p.earlier(a)}, nil)
				seen = append(seen, p.glance(ctx, a, late).seen) // which must show whoever wrote since
			} else {
				seen = append(seen, p.clear(ctx, a, p.icons.oneIn(2)))
			}
		}
	}
	for _, done := range seen {
		if err := after(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

// clear begins a look and an acknowledge of it while all is at rest: then the icon shows nobody.
func (p *play) clear(ctx context.Context, a *actor, saying bool) act {
	g := p.glance(ctx, a)
	k := &acknowledgment{idle: g.idle}
	if saying {
		k.of = g
	}
	a.icon.acknowledgments = append(a.icon.acknowledgments, k)
	return p.stage.begin(ctx, func(ctx context.Context) error { return p.empty(ctx, a, k) }, g.seen)
}

// empty acknowledges while all is at rest. The answer must show nobody.
func (p *play) empty(ctx context.Context, a *actor, k *acknowledgment) error {
	var asOf *newlyunread.Position
	if k.of != nil {
		asOf = &k.of.asOf
	}
	shown, err := p.confirm(ctx, a, k, asOf)
	if err != nil {
		return err
	}
	if n := len(shown.Senders); n > 0 || shown.Label() != "0" || shown.AcknowledgedAt == nil {
		p.found.add("the icon of person %d shows %q and %d people when all is acknowledged", a.id, shown.Label(), n)
	}
	return nil
}

// after waits for an act.
func after(ctx context.Context, a act) error {
	if a == nil {
		return nil
	}
	select {
	case <-a:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// arrive waits until all that was answered has arrived, for as long as patience lasts. Once no message waits, each has
// its events, and once a partition has had none after that, they are in the arrivals: it need not all be so at once.
func (p *play) arrive(ctx context.Context) error {
	if p.icons.tired {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	begun := p.icons.clock.Add(1)
	recipients := make([]newlyunread.Partition, 0, lastPartition+1)
	for partition := range lastPartition + 1 {
		recipients = append(recipients, partition)
	}
	for _, pending := range [][]newlyunread.Partition{{-1}, recipients} {
		for {
			var err error
			if pending, err = p.Queue.Pending(ctx, pending); err != nil {
				return err
			}
			if len(pending) == 0 {
				break
			}
			select {
			case <-time.After(idlePoll):
				continue
			case <-waiting.Done():
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			p.icons.tired = true
			p.found.add("after %v, messages still wait to be counted as newly unread", p.Patience)
			return nil
		}
	}
	p.icons.idle = append(p.icons.idle, begun)
	return nil
}

// compareIcons compares what each icon shows, and has ever shown, with what it must, and returns how many there are. In
// the end everybody acknowledges, and nobody is shown any more.
func (p *play) compareIcons(ctx context.Context) (int, error) {
	if p.NewlyUnread == nil {
		return 0, nil
	}
	if err := p.arrive(ctx); err != nil {
		return 0, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.Workers)
	var done atomic.Int64
	defer progress.Show(p.Progress, "icons", len(p.actors), &done)()
	for i, a := range p.actors {
		group.Go(func() error {
			defer done.Add(1)
			return p.compareIcon(ctx, a, i%2 == 0)
		})
	}
	return len(p.actors), group.Wait()
}

func (p *play) compareIcon(ctx context.Context, a *actor, saying bool) error {
	last := &glance{idle: p.icons.lastIdle()}
	if err := p.see(ctx, a, last); err != nil {
		return err
	}
	a.icon.glances = append(a.icon.glances, last)
	if wrong := a.judge(p.SmallGroup, p.icons.idle); wrong != "" {
		p.found.add("the icon of person %d %s", a.id, wrong)
	}
	few, err := p.NewlyUnread.Get(ctx, a.id, newlyunread.DefaultFirst)
	if err != nil {
		return err
	}
	if few.Label() != labelOf(len(last.senders)) || !slices.EqualFunc(few.Senders, last.senders[:min(len(last.senders), newlyunread.DefaultFirst)],
		func(s newlyunread.Sender, user id.User) bool { return s.UserID == user }) {
		p.found.add("the icon of person %d shows others where fewer are asked for", a.id)
	}
	if p.icons.tired {
		return nil
	}
	k := &acknowledgment{idle: last.idle}
	if saying {
		k.of = last
	}
	return p.empty(ctx, a, k)
}

// inspect looks at what can be told of an icon at any time: each sender is there once, newest first, and none is the
// person, and their number is right.
func (p *play) inspect(a *actor, shown newlyunread.Shown) {
	n, there := len(shown.Senders), make(map[id.User]bool, len(shown.Senders))
	for i, s := range shown.Senders {
		switch {
		case s.UserID == a.id:
			p.found.add("the icon of person %d shows themselves", a.id)
		case there[s.UserID]:
			p.found.add("the icon of person %d shows person %d twice", a.id, s.UserID)
		case i > 0 && !s.LatestAt.Before(shown.Senders[i-1].LatestAt):
			p.found.add("the icon of person %d shows person %d out of order", a.id, s.UserID)
		default:
			there[s.UserID] = true
			continue
		}
		return
	}
	if shown.Count() != min(n, iconCap) || shown.Capped() != (n > iconCap) || shown.Label() != labelOf(n) {
		p.found.add("the icon of person %d shows %d, %q, with %d people", a.id, shown.Count(), shown.Label(), n)
	}
}

// labelOf is how a number of people is drawn.
func labelOf(n int) string {
	if n > iconCap {
		return fmt.Sprintf("%d+", iconCap)
	}
	return strconv.Itoa(n)
}
