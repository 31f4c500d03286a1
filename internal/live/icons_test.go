package live_test

import (
	"testing"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/redis/redistest"
)

// look opens the messages icon of a person, and returns what waits until it shows a number.
func (p *process) look(who id.User, viewing bool) (shows func(count int)) {
	p.t.Helper()
	stream, err := p.hub.Icon(p.t.Context(), who, viewing)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(stream.Close)
	woken := make(chan struct{}, 1)
	stream.Notify(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	var shown newlyunread.Shown
	return func(count int) {
		p.t.Helper()
		timeout := time.NewTimer(patience)
		defer timeout.Stop()
		for {
			for {
				next, some, err := stream.Next()
				if err != nil {
					p.t.Fatal(err)
				}
				if !some {
					break
				}
				if next.AsOf < shown.AsOf {
					p.t.Errorf("shown up to %d after %d", next.AsOf, shown.AsOf)
				}
				shown = next
			}
			if shown.Count() == count {
				return
			}
			select {
			case <-woken:
			case <-timeout.C:
				p.t.Fatalf("after %v the icon shows %+v, want %d", patience, shown, count)
			}
		}
	}
}

func TestAnIconFollows(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben, cleo)
	writer.send(anna, group)
	shows := shown.look(ben, false)
	shows(1)
	writer.send(cleo, group)
	shows(2)
	if _, err := writer.icons.Acknowledge(t.Context(), ben, nil, 10); err != nil {
		t.Fatal(err)
	}
	shows(0)
	writer.send(anna, group)
	shows(1)
	if stats := shown.hub.Stats(); stats.People != 0 {
		t.Errorf("%+v", stats)
	}
}

// What a viewer was shown counts no more, on any screen.
func TestAViewerAcknowledgesWhatWasShown(t *testing.T) {
	t.Parallel()
	writer, shown := twoProcesses(t)
	group := writer.group(anna, ben, cleo)
	writer.send(anna, group)
	icon := shown.look(ben, false)
	icon(1)
	viewed := shown.look(ben, true)
	viewed(1)
	viewed(0)
	icon(0)
	writer.send(cleo, group)
	viewed(1)
	viewed(0)
	icon(0)
}

// An icon of which everything that was published is lost is right again when it is compared.
func TestALostPublicationOfAnIcon(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	writer := e.start(live.Config{}, nil)
	deaf := &switched{}
	shown := e.start(live.Config{ReconcileEvery: 300 * time.Millisecond}, deaf.between)
	group := writer.group(anna, ben)
	shows := shown.look(ben, false)
	shows(0)
	deaf.set(true)
	writer.send(anna, group)
	shows(1)
}

func TestAnIconWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	postgres := pgtest.NewServer(t)
	e := engines{t: t, database: postgres.URL(), redis: redistest.New(t)}
	p := e.start(live.Config{ReconcileEvery: 300 * time.Millisecond}, nil)
	group := p.group(anna, ben)
	shows := p.look(ben, true)
	shows(0)
	postgres.Kill()
	if _, err := p.hub.Icon(t.Context(), anna, false); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("subscribe: %v", err)
	}
	postgres.Start()
	p.send(anna, group)
	shows(1)
	shows(0)
}
