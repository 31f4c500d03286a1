package replay

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/progress"
	"tidemark/internal/readstate"
)

// How the audience is made up: one in so many, on the average.
const (
	another     = 3 // is a further screen of the same person
	filtering   = 3 // watches some channels only
	watched     = 3 // of all groups are among these
	showingAll  = 2 // shows muted channels too
	countingAll = 4 // has messages counted as far as can be, and not just to 99
)

const (
	// maxWatched bounds the channels that a screen names.
	maxWatched = 100
	// unborn is how many direct channels are named that nobody has made yet.
	unborn = 10
	// A slow screen looks at most so often, and a fickle one comes or goes so often: at least, and at most.
	mostLooks             = 20
	leastTurns, mostTurns = 4, 40
)

// audience are those who watch while the play goes on.
type audience []*screen

// gather returns screens of people of the trace, several for some, on all processes in turn. Who has which does not
// change what people do: the dice are others.
func (p *play) gather(c cast) audience {
	if len(p.actors) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(p.Seed, 1)) //nolint:gosec // it must be repeatable, not secret
	people, next := rng.Perm(len(p.actors)), 0
	screens := make(audience, p.Screens)
	for i := range screens {
		if i > 0 && rng.IntN(another) > 0 {
			next++
		}
		s := newScreen(p.actors[people[next%len(people)]].id)
		s.number, s.process = i+1, i%len(p.Processes)+1
		s.source = p.Processes[s.process-1]
		s.habit = habit(rng.IntN(int(habits)))
		s.watch = live.Watch{IncludeMuted: rng.IntN(showingAll) == 0, Cap: readstate.DefaultCap}
		if rng.IntN(countingAll) == 0 {
			s.watch.Cap = readstate.MaxCap
		}
		if rng.IntN(filtering) == 0 {
			s.watch.ChannelIDs = p.someChannels(rng)
		}
		turns := 0
		switch s.habit {
		case slow:
			turns = 1 + rng.IntN(mostLooks)
		case fickle:
			turns = leastTurns + rng.IntN(mostTurns-leastTurns+1)
		default:
		}
		if turns > 0 {
			s.every = int64(max(1, c.lines/turns))
			s.phase = rng.Int64N(s.every)
		}
		s.returns = rng.IntN(2) == 0
		screens[i] = s
	}
	return screens
}

// someChannels returns some groups, whoever is in them, and direct channels that are yet to be made.
func (p *play) someChannels(rng *rand.Rand) []id.Channel {
	channels := []id.Channel{}
	for _, r := range p.rooms {
		if rng.IntN(watched) == 0 && len(channels) < maxWatched-unborn {
			channels = append(channels, r.id)
		}
	}
	for range unborn {
		channels = append(channels, p.lastID+1+id.Channel(rng.Int64N(maxWatched)))
	}
	return channels
}

// turn says how many messages were sent. Whoever's turn it is then looks, comes or goes.
func (au audience) turn(sent int64) {
	for _, s := range au {
		if s.every > 0 && sent%s.every == s.phase {
			wake(s.due)
		}
	}
}

func (au audience) close() {
	for _, s := range au {
		s.close()
	}
}

// settle waits until every screen shows what it must, for as long as patience lasts, and tells of those that do not.
func (p *play) settle(ctx context.Context) error {
	if len(p.audience) == 0 {
		return nil
	}
	for _, s := range p.audience {
		s.expect(p.byID[s.user].expected())
	}
	waiting, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	var right atomic.Int64
	defer progress.Show(p.Progress, "screens", len(p.audience), &right)()
	for settled := false; !settled && waiting.Err() == nil; {
		right.Store(0)
		group, waiting := errgroup.WithContext(waiting)
		for _, s := range p.audience {
			group.Go(func() error {
				err := s.settle(waiting)
				if err == nil && s.wrong() == "" {
					right.Add(1)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		settled = true // unless one that was right by chance has changed since
		for _, s := range p.audience {
			s.look()
			settled = settled && s.settled()
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for _, s := range p.audience {
		if wrong := s.wrong(); wrong != "" {
			p.found.add("%v: %s", s, wrong)
		}
	}
	return nil
}
