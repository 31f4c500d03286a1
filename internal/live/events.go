package live

import (
	"context"
	"fmt"
	"slices"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
)

// ChannelEvent is something that happened in a channel: a *MessageAdded, *MessageDeleted or *ResyncNeeded.
type ChannelEvent interface{ IsChannelEvent() }

// MessageAdded is a message, be it new or from the log.
type MessageAdded struct {
	Message channel.Message
	// Version is one up to which its reader has now heard of all deletions.
	Version id.Seq
}

// MessageDeleted is a message that the reader may hold, and must drop.
type MessageDeleted struct {
	ChannelID id.Channel
	Seq       id.Seq
	Version   id.Seq // as of MessageAdded
}

// ResyncNeeded says that events are missing, and why. Those after it follow.
type ResyncNeeded struct {
	ChannelID id.Channel
	Reason    delivery.Reason
}

// IsChannelEvent marks a ChannelEvent.
func (*MessageAdded) IsChannelEvent() {}

// IsChannelEvent marks a ChannelEvent.
func (*MessageDeleted) IsChannelEvent() {}

// IsChannelEvent marks a ChannelEvent.
func (*ResyncNeeded) IsChannelEvent() {}

// EventStream tells of what happens in a channel, for as long as its reader is a member.
type EventStream struct {
	hub     *Hub
	user    id.User
	channel id.Channel

	// Guarded by the hub's mu.
	wake    func()
	open    bool // it has been told where it stands
	closed  bool
	err     error
	stretch *stretch
	joined  id.Seq         // nothing up to here is told
	at      delivery.Held  // what the reader has been told of
	log     []ChannelEvent // of the log, to be told before anything else
	more    bool           // the log has more after that
	last    ChannelEvent   // that Next took last
}

// Events subscribes to what happens in a channel, from where its reader says to stand, or from now. It is NOT_FOUND
// where the reader is not a member.
func (h *Hub) Events(ctx context.Context, user id.User, channelID id.Channel, from delivery.Held) (*EventStream, error) {
	if err := h.awaitStore(ctx); err != nil {
		return nil, fmt.Errorf("subscribe to a channel: %w", err)
	}
	e := &EventStream{hub: h, user: user, channel: channelID, at: from}
	h.mu.Lock()
	s := h.stretchOf(channelID)
	s.listeners[e] = struct{}{}
	h.counters.eventStreams.Add(1)
	e.stretch = s
	heard := s.heard
	h.mu.Unlock()
	if !heard {
		h.hear(ctx, []*stretch{s})
	}
	for !e.isOpen() {
		if err := h.readLog(ctx, e); err != nil {
			e.Close()
			return nil, fmt.Errorf("subscribe to a channel: %w", err)
		}
	}
	return e, nil
}

func (e *EventStream) isOpen() bool {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	return e.open
}

// readLog reads what a stream lacks from the log.
func (h *Hub) readLog(ctx context.Context, e *EventStream) error {
	h.mu.Lock()
	at, epoch, to := e.at, h.epoch, e.stretch.to
	h.mu.Unlock()
	missed, err := h.past.Missed(ctx, e.user, e.channel, at)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen(missed.StoreEpoch, epoch) && !e.closed {
		if missed.Version < to { // what is held here never was, or is no more
			e.stretch.reset()
		}
		e.catchUp(missed)
	}
	return nil
}

// Notify has wake called whenever an event begins to wait, and at once where one does. wake must not block, and is not
// to call the stream.
func (e *EventStream) Notify(wake func()) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	e.wake = wake
	e.wake()
}

// Next takes the next event, if there is one. It fails with NOT_FOUND where the reader is a member no more.
func (e *EventStream) Next() (ChannelEvent, bool, error) {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	told := e.next()
	if told == nil {
		return nil, false, e.err
	}
	e.last = told
	e.hub.counters.delivered.Add(1)
	return told, true, nil
}

func (e *EventStream) next() ChannelEvent {
	if e.closed || e.err != nil {
		return nil
	}
	if len(e.log) > 0 {
		told := e.log[0]
		e.log = e.log[1:]
		return told
	}
	e.log = nil
	if _, reading := e.hub.behind[e]; reading {
		return nil
	}
	if e.more {
		e.hub.fallBehind(e)
		return nil
	}
	for *e.at.SinceVersion < e.stretch.to {
		happened := e.stretch.after(*e.at.SinceVersion)
		switch {
		case happened == nil && e.stretch.to-*e.at.SinceVersion > MaxLag:
			// The events have gone, because the reader was too slow for them.
			e.moveTo(e.stretch.to, e.stretch.highWater)
			return &ResyncNeeded{ChannelID: e.channel, Reason: delivery.SlowReader}
		case happened == nil, happened.Kind == sent && happened.Message == nil:
			e.hub.fallBehind(e)
			return nil
		}
		if told := e.tell(happened); told != nil || e.err != nil {
			return told
		}
	}
	return nil
}

// tell turns what happened into what this reader is told of it, if anything.
func (e *EventStream) tell(happened *event) ChannelEvent {
	e.moveTo(happened.Version, happened.Seq)
	switch happened.Kind {
	case sent:
		return &MessageAdded{Message: happened.Message.For(e.user), Version: happened.Version}
	case deleted:
		if happened.Seq <= e.joined {
			return nil
		}
		return &MessageDeleted{ChannelID: e.channel, Seq: happened.Seq, Version: happened.Version}
	default:
		if slices.Contains(happened.Left, e.user) {
			e.err = fault.NoChannel()
		}
		return nil
	}
}

func (e *EventStream) moveTo(version, seq id.Seq) {
	e.at.SinceVersion = &version
	if seq > *e.at.After {
		e.at.After = &seq
	}
}

// Again has the event that Next took last wait again.
func (e *EventStream) Again() {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	if e.last != nil {
		e.log = append([]ChannelEvent{e.last}, e.log...)
		e.last = nil
	}
	e.wakeUp()
}

// Close ends the stream.
func (e *EventStream) Close() {
	e.hub.mu.Lock()
	defer e.hub.mu.Unlock()
	if e.closed {
		return
	}
	e.closed, e.log, e.last = true, nil, nil
	delete(e.stretch.listeners, e)
	e.hub.counters.eventStreams.Add(-1)
	delete(e.hub.behind, e)
	e.hub.release(e.stretch)
}

// catchUp takes in what the log said.
func (e *EventStream) catchUp(missed delivery.Missed) {
	delete(e.hub.behind, e)
	e.stretch.learn(e.hub, missed.Version, missed.HighWaterSeq)
	e.open, e.joined, e.at.StoreEpoch = true, missed.JoinedSeq, &missed.StoreEpoch
	e.more = missed.HasMore
	if missed.Reason != "" {
		e.at.After, e.at.SinceVersion = &missed.HighWaterSeq, &missed.Version
		e.log = append(e.log, &ResyncNeeded{ChannelID: e.channel, Reason: missed.Reason})
		e.wakeUp()
		return
	}
	// Whoever stops in the middle and comes back with the version they were told last must not miss a deletion: only
	// the last one has the version that holds for all.
	for i, seq := range missed.DeletedSeqs {
		version := missed.Since
		if i == len(missed.DeletedSeqs)-1 {
			version = missed.Version
		}
		e.log = append(e.log, &MessageDeleted{ChannelID: e.channel, Seq: seq, Version: version})
	}
	for _, m := range missed.Messages {
		e.log = append(e.log, &MessageAdded{Message: m, Version: missed.Version})
	}
	e.at.After, e.at.SinceVersion = &missed.UpTo, &missed.Version
	e.wakeUp()
}

// end has nothing more come.
func (e *EventStream) end(err error) {
	delete(e.hub.behind, e)
	e.err = err
	e.wakeUp()
}

func (e *EventStream) wakeUp() {
	if e.wake != nil && !e.closed {
		e.wake()
	}
}

// fallBehind has a stream read what it lacks from the log.
func (h *Hub) fallBehind(e *EventStream) {
	h.behind[e] = struct{}{}
	wake(h.mend)
}
