package replay

import (
	"context"
	"slices"

	"tidemark/internal/id"
	"tidemark/internal/readstate"
)

// How often something happens: once in so many lines or chances, on the average.
const (
	readingFirst  = 3   // somebody reads a channel before they write in it
	answering     = 6   // who is named or answered opens the app
	looking       = 10  // anybody opens the app
	readingAll    = 2   // they read everything, and not only some of the channels
	skimming      = 3   // they read a part of a channel
	trusting      = 10  // they send a cursor without its epoch
	switching     = 4   // they read on a second device at the same time
	comingLate    = 20  // a device sends cursors of some time ago
	markingPast   = 40  // a client marks a channel read further than it goes
	markingUnread = 15  // somebody marks a channel unread
	muting        = 30  // somebody mutes a channel, or unmutes it
	deleting      = 40  // the writer deletes a message of theirs
	resending     = 50  // the writer's device sends an old message again
	leaving       = 50  // somebody leaves a channel
	returning     = 100 // somebody who left comes back
	doubling      = 10  // a call is made twice at the same time
)

// live has people do what they do besides writing. Where it cannot be done, nothing happens.
func (p *play) live(ctx context.Context, writer *seat) {
	if p.oneIn(looking) {
		p.look(ctx, p.anybody())
	}
	if p.oneIn(comingLate) {
		p.markLate(ctx, p.anybody())
	}
	if p.oneIn(markingPast) {
		p.markPast(ctx, p.anySeat())
	}
	if p.oneIn(markingUnread) {
		p.markUnread(ctx, p.anySeat())
	}
	if p.oneIn(muting) {
		p.mute(ctx, p.anySeat())
	}
	if p.oneIn(deleting) {
		p.delete(ctx, writer)
	}
	if p.oneIn(resending) {
		p.resend(ctx, writer)
	}
	if p.oneIn(leaving) {
		p.leave(ctx, p.anySeat())
	}
	if p.oneIn(returning) && len(p.away) > 0 {
		i := p.rng.IntN(len(p.away))
		s := p.away[i]
		p.away = slices.Delete(p.away, i, i+1)
		p.comeBack(ctx, s)
	}
}

func (p *play) anybody() *actor { return p.actors[p.rng.IntN(len(p.actors))] }

func (p *play) anySeat() *seat {
	a := p.anybody()
	return a.seats[p.rng.IntN(len(a.seats))]
}

// look has a person open the app and read in some channels, or in all.
func (p *play) look(ctx context.Context, a *actor) {
	all := p.oneIn(readingAll)
	var seats []*seat
	for _, s := range a.seats {
		if s.member && s.cursor < s.room.head() && (all || p.oneIn(2)) && len(seats) < readstate.MaxCursors {
			seats = append(seats, s)
		}
	}
	if len(seats) > 0 {
		p.read(ctx, a, seats)
	}
}

// read has a person read in channels that they are in, up to what they are shown there or a part of it.
func (p *play) read(ctx context.Context, a *actor, seats []*seat) {
	calls := [][]mark{p.marks(seats)}
	if p.oneIn(switching) {
		calls = append(calls, p.marks(seats))
	}
	if p.oneIn(doubling) {
		again := slices.Clone(calls[0])
		slices.Reverse(again)
		calls = append(calls, again)
	}
	if a.late == nil || p.oneIn(comingLate) {
		a.late = calls[0]
	}
	p.markRead(ctx, a, calls)
}

func (p *play) marks(seats []*seat) []mark {
	marks := make([]mark, len(seats))
	for i, s := range seats {
		upTo := s.room.head()
		if p.oneIn(skimming) {
			upTo = s.joined + id.Seq(p.rng.Int64N(int64(upTo-s.joined)+1))
		}
		marks[i] = mark{seat: s, cursor: readstate.Cursor{ChannelID: s.room.id, UpToSeq: upTo}}
		if epoch := s.epoch; !p.oneIn(trusting) {
			marks[i].cursor.ReadEpoch = &epoch
		}
	}
	return marks
}

// markLate has a device send again what it sent some time ago. Nothing comes of it, but for a cursor without its epoch.
func (p *play) markLate(ctx context.Context, a *actor) {
	if a.late != nil {
		p.markRead(ctx, a, [][]mark{a.late})
	}
}
