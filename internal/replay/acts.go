package replay

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// viewer is who the service takes somebody for.
func (a *actor) viewer() person.Viewer { return person.Viewer{ID: a.id, Role: person.RoleUser} }

// backend is the viewer that makes channels and adds members.
func backend() person.Viewer { return person.Viewer{Role: person.RoleService} }

// device names one of a person's devices.
func device(n int) id.Device { return id.Device("replay-" + strconv.Itoa(n)) }

// create makes a channel with all who have a seat in it.
func (p *play) create(ctx context.Context, r *room) {
	users := slices.Sorted(maps.Keys(r.seats))
	made := channel.New{ID: r.id, Kind: r.kind, Members: users[:min(len(users), channel.MaxPeople)]}
	if r.kind == channel.Group {
		made.Name = "Replay " + r.id.String()
	}
	r.turn = p.stage.begin(ctx, func(ctx context.Context) error {
		_, err := p.Channels.Create(ctx, backend(), made)
		return err
	})
	for more := range slices.Chunk(users[len(made.Members):], channel.MaxPeople) {
		r.turn = p.stage.begin(ctx, func(ctx context.Context) error {
			_, err := p.Channels.AddMembers(ctx, backend(), r.id, more)
			return err
		}, r.turn)
	}
}

// send sends a message; now and then twice at the same time, as a client does that has lost patience.
func (p *play) send(ctx context.Context, s *seat, m message) {
	m.when = &span{}
	seq, copies := s.send(m), p.copies()
	p.stage.inTurn(ctx, s, func(ctx context.Context) error {
		err := p.icons.time(m.when, func() error { return p.deliver(ctx, s, m, seq, copies, 1) })
		if err == nil && s.room.kind == channel.Group {
			p.audience.turn(p.sent.Add(1))
		}
		return err
	})
}

// resend sends one of a person's messages again.
func (p *play) resend(ctx context.Context, s *seat) {
	if !s.member || len(s.sent) == 0 {
		return
	}
	seq := s.sent[p.rng.IntN(len(s.sent))]
	m := *s.room.at(seq)
	p.stage.beside(ctx, []*seat{s}, func(ctx context.Context) error {
		return p.deliver(ctx, s, m, seq, 1, 0)
	})
}

// deliver sends copies of a message. All must be answered with the same one, and so many of them must have made it.
func (p *play) deliver(ctx context.Context, s *seat, m message, seq id.Seq, copies, making int) error {
	draft := channel.Draft{
		ChannelID:        s.room.id,
		Body:             text(p.Seed, m.line, m.length),
		ClientMessageID:  "line-" + strconv.Itoa(m.line),
		Mentions:         m.named,
		MentionsEveryone: m.everyone,
	}
	var made atomic.Int64
	err := together(ctx, copies, func(ctx context.Context, _ int) error {
		sent, err := p.Channels.Send(ctx, s.actor.viewer(), draft, readstate.DefaultCap)
		if err != nil {
			return err
		}
		if !sent.Duplicate {
			made.Add(1)
		}
		if got := sent.Message.Seq; got != seq {
			p.found.add("%s:%d: the message has seq %d in channel %d, want %d", p.File, m.line, got, s.room.id, seq)
		}
		return nil
	})
	if got := made.Load(); err == nil && got != int64(making) {
		p.found.add("%s:%d: made %d new messages in channel %d, want %d", p.File, m.line, got, s.room.id, making)
	}
	return err
}

// markRead sends marks from several devices at the same time, those of each in one call.
func (p *play) markRead(ctx context.Context, a *actor, calls [][]mark) {
	cursors := make([][]readstate.Cursor, len(calls))
	for i, marks := range calls {
		for _, m := range marks {
			m.seat.markRead(m.cursor)
			cursors[i] = append(cursors[i], m.cursor)
		}
	}
	seats := make([]*seat, len(calls[0]))
	for i, m := range calls[0] {
		seats[i] = m.seat
	}
	one := len(seats) == 1 && seats[0].member
	p.stage.beside(ctx, seats, func(ctx context.Context) error {
		return together(ctx, len(cursors), func(ctx context.Context, i int) (err error) {
			if one {
				_, err = p.ReadStates.MarkRead(ctx, a.id, device(i), cursors[i][0], readstate.DefaultCap)
			} else {
				_, err = p.ReadStates.MarkManyRead(ctx, a.id, device(i), cursors[i], readstate.DefaultCap)
			}
			return err
		})
	})
}

// markPast marks a channel read further than it goes, which marks it read up to its newest message.
func (p *play) markPast(ctx context.Context, s *seat) {
	if !s.member {
		return
	}
	s.markRead(readstate.Cursor{UpToSeq: s.room.head()})
	past := readstate.Cursor{ChannelID: s.room.id, UpToSeq: id.MaxSeq}
	p.stage.aloneInTurn(ctx, s, p.answered(s, p.copies(), func(ctx context.Context) (*readstate.Badge, error) {
		result, err := p.ReadStates.MarkRead(ctx, s.actor.id, device(0), past, readstate.DefaultCap)
		return result.Badge, err
	}))
}

// markUnread makes a message and all after it unread again. Sometimes it comes from a device that knows an older
// epoch, which does nothing; and sent twice with one epoch, it is done once.
func (p *play) markUnread(ctx context.Context, s *seat) {
	if !s.member || s.room.head() == 0 {
		return
	}
	from := 1 + id.Seq(p.rng.Int64N(int64(s.room.head())))
	var epoch *int
	copies := 1
	if known := s.epoch; !p.oneIn(3) {
		if p.oneIn(4) {
			known--
		}
		epoch, copies = &known, p.copies()
	}
	s.markUnread(from, epoch)
	p.stage.alone(ctx, s, p.answered(s, copies, func(ctx context.Context) (*readstate.Badge, error) {
		result, err := p.ReadStates.MarkUnread(ctx, s.actor.id, s.room.id, from, epoch, readstate.DefaultCap)
		return result.Badge, err
	}))
}

// mute mutes a channel for a person, or unmutes it.
func (p *play) mute(ctx context.Context, s *seat) {
	if !s.member {
		return
	}
	muted := !s.muted
	change := s.mute(muted)
	set := p.answered(s, p.copies(), func(ctx context.Context) (*readstate.Badge, error) {
		badge, err := p.ReadStates.SetMuted(ctx, s.actor.id, s.room.id, muted, readstate.DefaultCap)
		return &badge, err
	})
	p.stage.alone(ctx, s, func(ctx context.Context) error {
		return p.icons.time(&change.span, func() error { return set(ctx) })
	})
}

// answered makes a call, so many times at once. Each must be answered with where the person stands after it.
func (p *play) answered(s *seat, copies int, call func(context.Context) (*readstate.Badge, error)) func(context.Context) error {
	want, place := s.standing, p.stage.place
	return func(ctx context.Context) error {
		return together(ctx, copies, func(ctx context.Context, _ int) error {
			badge, err := call(ctx)
			if err != nil {
				return err
			}
			var got standing
			if badge != nil {
				got = standingOf(*badge)
			}
			if got != want {
				p.found.add("%s: person %d in channel %d is answered: %v; want %v", place, s.actor.id, s.room.id, got, want)
			}
			return nil
		})
	}
}

// delete deletes one of a person's messages, mostly the one just sent. It may be deleted already.
func (p *play) delete(ctx context.Context, s *seat) {
	if !s.member || len(s.sent) == 0 {
		return
	}
	seq, copies := s.sent[len(s.sent)-1], p.copies()
	if p.oneIn(3) {
		seq = s.sent[p.rng.IntN(len(s.sent))]
	}
	s.room.delete(seq)
	p.stage.beside(ctx, []*seat{s}, func(ctx context.Context) error {
		return together(ctx, copies, func(ctx context.Context, _ int) error {
			_, err := p.Channels.Delete(ctx, s.actor.viewer(), s.room.id, seq)
			return err
		})
	})
}

// leave has a person leave a group.
func (p *play) leave(ctx context.Context, s *seat) {
	if !s.member || s.room.kind != channel.Group {
		return
	}
	s.leave()
	p.away = append(p.away, s)
	p.stage.aloneInTurn(ctx, s, func(ctx context.Context) error {
		_, err := p.Channels.RemoveMember(ctx, s.actor.viewer(), s.room.id, s.actor.id)
		return err
	})
}

// comeBack has a person be added to a group that they left.
func (p *play) comeBack(ctx context.Context, s *seat) {
	if s.member {
		return
	}
	s.join()
	copies := p.copies()
	p.stage.aloneInTurn(ctx, s, func(ctx context.Context) error {
		return together(ctx, copies, func(ctx context.Context, _ int) error {
			_, err := p.Channels.AddMembers(ctx, backend(), s.room.id, []id.User{s.actor.id})
			return err
		})
	})
}

// copies is how often a call is made at the same time.
func (p *play) copies() int {
	if p.oneIn(doubling) {
		return 2
	}
	return 1
}
