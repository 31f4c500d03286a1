package live_test

import (
	"maps"
	"sync"
	"testing"
	"time"

	"tidemark/internal/live"
)

// twoProcesses are one that writes and one that people look at.
func twoProcesses(t *testing.T) (writer, shown *process) {
	t.Helper()
	e := newEngines(t)
	config := live.Config{ReconcileEvery: time.Hour} // nothing is right by comparing
	return e.start(config, nil), e.start(config, nil)
}

func TestAScreenFollows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(t *testing.T) (writer, shown *process)
	}{
		{"another process", twoProcesses},
		{"the same process", func(t *testing.T) (writer, shown *process) {
			t.Helper()
			p := newEngines(t).start(live.Config{ReconcileEvery: time.Hour}, nil)
			return p, p
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			writer, shown := test.make(t)
			here, there := writer.group(anna, ben, cleo), writer.group(anna, ben)
			writer.send(anna, here)
			screens := []*screen{shown.watch(ben, live.Watch{}), shown.watch(ben, live.Watch{IncludeMuted: true}), shown.watch(anna, live.Watch{})}
			same := func(what string) {
				t.Helper()
				for i, s := range screens {
					want, total := writer.truth(s.who, i == 1)
					s.await(what, func() bool { return maps.Equal(s.badges, want) && s.total == total })
				}
			}
			same("the snapshot")
			writer.send(anna, here, ben)
			same("a mention")
			writer.send(cleo, here)
			same("a message")
			writer.read(ben, here, 2)
			same("a part is read")
			writer.send(ben, here)
			same("own message")
			writer.send(anna, here)
			if _, err := writer.readStates.MarkUnread(t.Context(), ben, here, 2, nil, 99); err != nil {
				t.Fatal(err)
			}
			same("marked unread")
			writer.delete(cleo, here, 3)
			same("a deletion")
			writer.delete(anna, here, 2)
			same("a mention is deleted")
			writer.mute(ben, here, true)
			screens[0].await("it is told of a mute", func() bool { return screens[0].badges[here].Muted })
			delete(screens[0].badges, here)
			same("muted")
			writer.send(anna, here)
			same("a message while muted")
			writer.mute(ben, here, false)
			same("unmuted")
			writer.leave(ben, here)
			same("left")
			writer.send(anna, here)
			writer.add(here, anna, ben)
			same("back")
			writer.send(anna, here)
			same("a message after coming back")
			more := writer.group(ben, anna)
			same("a new channel")
			writer.send(anna, more)
			writer.send(anna, there)
			same("messages in others")
			if stats := shown.hub.Stats(); stats.Reconciled != 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// L02: a message is sent at every moment around subscribe.
func TestL02SendsAroundSubscribe(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben)
	const rounds = 60
	for range rounds {
		var sending sync.WaitGroup
		stop := make(chan struct{})
		sending.Go(func() {
			for {
				writer.send(anna, group)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
		s := shown.watch(ben, live.Watch{Cap: 10_000})
		s.look()
		close(stop)
		sending.Wait()
		want, total := writer.truth(ben, false)
		s.await("all that was sent is told", func() bool { return maps.Equal(s.badges, want) && s.total == total })
		s.stream.Close()
	}
	if stats := shown.hub.Stats(); stats.People != 0 || stats.Reconciled != 0 {
		t.Errorf("%+v", stats)
	}
}
