package brokertest

import (
	"fmt"
	"sync"
	"time"

	"tidemark/internal/live"
)

func (t test) wantedWhileDown() {
	early := t.Broker()
	if early.Up() {
		t.Error("up before Run was called")
	}
	if err := early.Subscribe(t.Context(), "channel:{1}"); err == nil {
		t.Error("Subscribe has succeeded before Run was called")
	}
	if err := early.Publish(t.Context(), live.Publication{Topic: "channel:{1}"}); err == nil {
		t.Error("Publish has succeeded before Run was called")
	}
	p, other := StartUp(t.T, early), t.startUp()
	other.MustReach("channel:{1}", "early", p)

	t.Kill()
	p.AwaitDown()
	other.AwaitDown()
	start := time.Now()
	many := topics(1500)
	if err := p.Subscribe(t.Context(), many...); err == nil {
		t.Error("Subscribe has succeeded while the server is gone")
	}
	p.Unsubscribe(many[0], many[1])
	if err := p.Subscribe(t.Context(), many[0]); err == nil {
		t.Error("Subscribe has succeeded while the server is gone")
	}
	if err := p.Publish(t.Context(), live.Publication{Topic: many[0]}); err == nil {
		t.Error("Publish has succeeded while the server is gone")
	}
	if took := time.Since(start); took > promptly {
		t.Errorf("took %v while the link was known to be down", took)
	}
	t.Start()
	p.AwaitResumed(2)
	other.AwaitResumed(2)
	other.MustPublish(many[1], "late") // which was unsubscribed
	for _, topic := range []live.Topic{many[0], many[2], many[len(many)-1]} {
		other.MustReach(topic, "late", p)
	}
	if got := p.Payloads(many[1]); got != nil {
		t.Errorf("received %q on a topic that was unsubscribed meanwhile", got)
	}
}

func (t test) outage() {
	p, other := t.startUp(), t.startUp()
	many := topics(1200)
	p.MustSubscribe(many...)
	for outage := range 3 {
		t.Kill()
		p.AwaitDown()
		other.AwaitDown()
		t.Start()
		p.AwaitResumed(outage + 2)
		other.AwaitResumed(outage + 2)
		var workers sync.WaitGroup
		for w := range 8 {
			workers.Go(func() {
				for i := w; i < len(many); i += 8 {
					other.MustReach(many[i], fmt.Sprint("after outage ", outage), p)
				}
			})
		}
		workers.Wait()
	}
	if got := p.ResumedTimes(); got != 4 {
		t.Errorf("resumed %d times, want 4: at the start and after each outage", got)
	}
}

func (t test) ends() {
	// At any moment of connecting.
	for i := range 20 {
		p := Start(t.T, t.Broker())
		_ = p.Subscribe(t.Context(), topics(i*100)...)
		p.StopAfter(time.Duration(i) * 200 * time.Microsecond)
	}
	// While callers wait, all of whom have to be told.
	p := t.startUp()
	var callers sync.WaitGroup
	for w := range 8 {
		callers.Go(func() {
			for i := 0; ; i++ {
				if err := p.Subscribe(t.Context(), live.Topic(fmt.Sprintf("user:{%d%d}", w, i))); err != nil {
					return
				}
			}
		})
	}
	p.Stop()
	callers.Wait()

	// Without a server, and when it has gone.
	late, up := t.Broker(), t.startUp()
	t.Kill()
	up.AwaitDown()
	up.Stop()
	p = Start(t.T, late)
	p.Stop()
}
