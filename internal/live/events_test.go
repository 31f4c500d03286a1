package live_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/person"
)

// listener is a client that follows a channel and keeps what it is told, as clients are to do.
type listener struct {
	t      *testing.T
	stream *live.EventStream
	woken  chan struct{}
	held   []id.Seq // messages, in the order in which they came
	gone   map[id.Seq]bool
	at     delivery.Held
	resync []delivery.Reason
	err    error
}

func (p *process) listen(who id.User, to id.Channel, from delivery.Held) *listener {
	p.t.Helper()
	stream, err := p.hub.Events(p.t.Context(), who, to, from)
	if err != nil {
		p.t.Fatal(err)
	}
	l := &listener{t: p.t, stream: stream, woken: make(chan struct{}, 1), gone: make(map[id.Seq]bool), at: from}
	p.t.Cleanup(stream.Close)
	stream.Notify(func() {
		select {
		case l.woken <- struct{}{}:
		default:
		}
	})
	return l
}

func (l *listener) look() {
	for {
		e, some, err := l.stream.Next()
		if err != nil {
			l.err = err
		}
		if !some {
			return
		}
		l.take(e)
	}
}

func (l *listener) take(e live.ChannelEvent) {
	l.t.Helper()
	var version id.Seq
	switch e := e.(type) {
	case *live.MessageAdded:
		version = e.Version
		if n := len(l.held); n > 0 && e.Message.Seq <= l.held[n-1] {
			l.t.Errorf("message %d after %d", e.Message.Seq, l.held[n-1])
		}
		l.held = append(l.held, e.Message.Seq)
		l.at.After = &e.Message.Seq
		if e.Message.Deleted {
			l.gone[e.Message.Seq] = true
		}
	case *live.MessageDeleted:
		version = e.Version
		l.gone[e.Seq] = true
	case *live.ResyncNeeded:
		l.resync = append(l.resync, e.Reason)
		return
	}
	if l.at.SinceVersion != nil && version < *l.at.SinceVersion {
		l.t.Errorf("version %d after %d", version, *l.at.SinceVersion)
	}
	l.at.SinceVersion = &version
}

func (l *listener) await(what string, ok func() bool) {
	l.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		l.look()
		if ok() {
			return
		}
		select {
		case <-l.woken:
		case <-timeout.C:
			l.t.Fatalf("not so after %v: %s; it holds %v without %v, was told %v and %v", patience, what, l.held, l.gone, l.resync, l.err)
		}
	}
}

func (l *listener) awaitHeld(want ...id.Seq) {
	l.t.Helper()
	l.await(fmt.Sprintf("it holds %v", want), func() bool { return slices.Equal(l.held, want) })
}

func TestAListenerFollows(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben)
	for range 3 {
		writer.send(anna, group)
	}
	now := shown.listen(ben, group, delivery.Held{})
	all := shown.listen(ben, group, delivery.Held{After: new(id.Seq(0)), SinceVersion: new(id.Seq(0))})
	all.awaitHeld(1, 2, 3)
	now.look()
	writer.send(ben, group)
	writer.delete(anna, group, 2)
	now.awaitHeld(4)
	all.awaitHeld(1, 2, 3, 4)
	for _, l := range []*listener{now, all} {
		l.await("2 is gone", func() bool { return l.gone[2] })
	}
	// Who comes back with what they were told last is told the rest.
	writer.delete(anna, group, 3)
	writer.send(anna, group)
	back := shown.listen(ben, group, all.at)
	back.awaitHeld(5)
	if !back.gone[3] || back.gone[2] {
		t.Errorf("gone: %v", back.gone)
	}
	// Who leaves is told nothing more.
	writer.leave(ben, group)
	writer.send(anna, group)
	for _, l := range []*listener{now, all, back} {
		l.await("the stream ends", func() bool { return l.err != nil })
		if fault.CodeOf(l.err) != fault.NotFound || slices.Contains(l.held, 6) {
			t.Errorf("%v: holds %v", l.err, l.held)
		}
	}
	if _, err := shown.hub.Events(t.Context(), cleo, group, delivery.Held{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a stranger: %v", err)
	}
	if stats := shown.hub.Stats(); stats.Gaps != 0 {
		t.Errorf("%+v", stats)
	}
}

func TestAListenerSeesMessagesAsTheirOwn(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben)
	screens := map[id.User]*live.EventStream{}
	for _, who := range []id.User{anna, ben} {
		screens[who] = shown.listen(who, group, delivery.Held{}).stream
	}
	draft := channel.Draft{ChannelID: group, Body: "hello", ClientMessageID: "one", Mentions: []id.User{ben}}
	if _, err := writer.channels.Send(t.Context(), person.Viewer{ID: anna}, draft, 99); err != nil {
		t.Fatal(err)
	}
	for who, stream := range screens {
		eventually(t, "the message comes", func() bool {
			e, some, _ := stream.Next()
			if !some {
				return false
			}
			m := e.(*live.MessageAdded).Message
			if (m.ClientMessageID != nil) != (who == anna) || m.MentionsViewer != (who == ben) || m.Body != "hello" {
				t.Errorf("%d sees %+v", who, m)
			}
			return true
		})
	}
}

func TestAListenerIsToldToStartAfresh(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben)
	writer.send(anna, group)
	for _, test := range []struct {
		from delivery.Held
		want delivery.Reason
	}{
		{delivery.Held{After: new(id.Seq(5))}, delivery.CursorAhead},
		{delivery.Held{After: new(id.Seq(1)), StoreEpoch: new("another")}, delivery.StoreChanged},
	} {
		l := shown.listen(ben, group, test.from)
		l.await("it is told so", func() bool { return slices.Equal(l.resync, []delivery.Reason{test.want}) })
		writer.send(anna, group)
		l.await("what happens then follows", func() bool { return len(l.held) == 1 })
	}
}

// A reader who falls 1,000 events behind is told so, and others are not held up.
func TestASlowListener(t *testing.T) {
	t.Parallel()
	p := newEngines(t).start(live.Config{ReconcileEvery: time.Hour}, nil)
	group := p.group(anna, ben)
	slow, quick := p.listen(ben, group, delivery.Held{}), p.listen(ben, group, delivery.Held{})
	for n := range live.MaxLag + 100 {
		p.send(anna, group)
		quick.await("the message comes at once", func() bool { return len(quick.held) == n+1 })
	}
	slow.await("it is told to start afresh", func() bool { return slices.Equal(slow.resync, []delivery.Reason{delivery.SlowReader}) })
	if len(slow.held) != 0 || len(quick.resync) != 0 {
		t.Errorf("%v, %v", slow.held, quick.resync)
	}
	p.send(anna, group)
	slow.awaitHeld(live.MaxLag + 101)
}

// TestListenersMissNothing has publications lost, doubled and reordered. Each reader is told of every message, in
// order, and of every deletion.
func TestListenersMissNothing(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	writer := e.start(live.Config{}, nil)
	shown := e.start(live.Config{ReconcileEvery: 300 * time.Millisecond, Settle: 10 * time.Millisecond},
		func(b live.Broker) live.Broker { return lossy{b, 0.2, 0.2, 0.2} })
	group := writer.group(anna, ben)
	l := shown.listen(ben, group, delivery.Held{})
	const messages = 300
	var want []id.Seq
	for n := range id.Seq(messages) {
		want = append(want, n+1)
		writer.send(anna, group)
		if n%3 == 1 {
			writer.delete(anna, group, n)
		}
		if n%50 == 0 {
			l.look()
		}
	}
	l.awaitHeld(want...)
	l.await("every deletion is told", func() bool { return len(l.gone) == messages/3 })
}
