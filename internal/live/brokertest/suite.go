package brokertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/live"
)

// Env is a server of the test's own and the brokers on it.
type Env struct {
	// Broker returns the broker of one more process. Nothing of it runs yet.
	Broker func() live.Broker
	// Kill ends the server, and Start starts it again at the same place.
	Kill, Start func()
}

// Run tests the brokers that open gives, each time on another server.
func Run(t *testing.T, open func(t *testing.T) Env) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(test)
	}{
		{"reaches every process", test.reachesAll},
		{"keeps the order of one call", test.keepsOrder},
		{"brings only what is subscribed to", test.onlySubscribed},
		{"ends a subscription", test.unsubscribe},
		{"carries any payload", test.payloads},
		{"subscribes before it returns", test.subscribesFirst},
		{"survives changes of mind", test.races},
		{"wants what was subscribed to while down", test.wantedWhileDown},
		{"resumes when the server is back", test.outage},
		{"may be called by its receiver", test.receiverCalls},
		{"heeds contexts", test.contexts},
		{"ends in every state", test.ends},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			c.test(test{t, open(t)})
		})
	}
}

// test is one test of the suite.
type test struct {
	*testing.T
	Env
}

// startUp starts one more process.
func (t test) startUp() *Process {
	t.Helper()
	return StartUp(t.T, t.Broker())
}

// topics returns n different topics.
func topics(n int) []live.Topic {
	all := make([]live.Topic, n)
	for i := range all {
		all[i] = live.Topic(fmt.Sprintf("channel:{%d}", i+1))
	}
	return all
}

func (t test) reachesAll() {
	var all []*Process
	for range 3 {
		p := t.startUp()
		p.MustSubscribe("user:{7}", "channel:{7}")
		all = append(all, p)
	}
	for i, p := range all {
		p.MustReach("user:{7}", fmt.Sprint(i), all...)
		p.MustReach("channel:{7}", fmt.Sprint(i), all...)
	}
	for i, p := range all {
		for _, topic := range []live.Topic{"user:{7}", "channel:{7}"} {
			if got := p.Payloads(topic); !slices.Equal(got, []string{"0", "1", "2"}) {
				t.Errorf("process %d received %q on %s, want each once", i, got, topic)
			}
		}
	}
}

func (t test) keepsOrder() {
	p, other := t.startUp(), t.startUp()
	p.MustSubscribe("channel:{1}")
	var want []string
	for call := range 5 {
		var payloads []string
		for i := range 200 {
			payloads = append(payloads, fmt.Sprintf("%d.%d", call, i))
		}
		want = append(want, payloads...)
		came := p.Expect("channel:{1}", payloads[len(payloads)-1])
		other.MustPublish("channel:{1}", payloads...)
		select {
		case <-came:
		case <-time.After(patience):
			t.Fatal("the last publication of a call has not come")
		}
	}
	if got := p.Payloads("channel:{1}"); !slices.Equal(got, want) {
		t.Errorf("%d publications came, not in the order of %d", len(got), len(want))
	}
}

func (t test) onlySubscribed() {
	p, other := t.startUp(), t.startUp()
	other.MustSubscribe("channel:{1}", "channel:{2}", "user:{1}")
	p.MustSubscribe("channel:{1}")
	for i := range 20 {
		other.MustReach("channel:{2}", fmt.Sprint(i), other)
		other.MustReach("user:{1}", fmt.Sprint(i), other)
		other.MustReach("channel:{1}", fmt.Sprint(i), other, p)
	}
	for _, topic := range []live.Topic{"channel:{2}", "user:{1}"} {
		if got := p.Payloads(topic); got != nil {
			t.Errorf("received %q on %s, which was not subscribed to", got, topic)
		}
	}
}

func (t test) unsubscribe() {
	p, other := t.startUp(), t.startUp()
	p.MustSubscribe("channel:{1}", "channel:{2}")
	other.MustReach("channel:{1}", "before", p)
	p.Unsubscribe("channel:{1}", "channel:{3}") // the latter was never subscribed to
	n := 0
	eventually(t.T, "nothing comes on an unsubscribed topic", func() bool {
		n++
		seen := len(p.Payloads("channel:{1}"))
		other.MustPublish("channel:{1}", fmt.Sprint("after ", n))
		other.MustReach("channel:{2}", fmt.Sprint("after ", n), p)
		return len(p.Payloads("channel:{1}")) == seen
	})
	p.MustSubscribe("channel:{1}")
	other.MustReach("channel:{1}", "again", p)
}

func (t test) payloads() {
	p, other := t.startUp(), t.startUp()
	p.MustSubscribe("channel:{1}")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, payload := range []string{
		"", "\x00", "\r\n", "$3\r\nfoo\r\n", "-ERR\r\n", "\xff\xfe", "é", string(every), strings.Repeat(string(every), 400),
	} {
		other.MustReach("channel:{1}", payload, p)
	}

	// A buffer may be used again as soon as Publish has returned.
	buffer := []byte("first")
	came := p.Expect("channel:{1}", "first")
	if err := other.Publish(t.Context(), live.Publication{Topic: "channel:{1}", Payload: buffer}); err != nil {
		t.Fatal(err)
	}
	copy(buffer, "other")
	select {
	case <-came:
	case <-time.After(patience):
		t.Errorf("got %q", p.Payloads("channel:{1}"))
	}
	if err := other.Publish(t.Context()); err != nil {
		t.Errorf("nothing to publish: %v", err)
	}
}

// subscribesFirst has many publications made right after Subscribe has returned, by another process.
func (t test) subscribesFirst() {
	p, other := t.startUp(), t.startUp()
	many := topics(2500)
	var workers sync.WaitGroup
	for w := range 16 {
		workers.Go(func() {
			for i := w; i < 1000; i += 16 {
				p.MustSubscribe(many[i])
				other.MustReach(many[i], "one", p)
			}
		})
	}
	workers.Wait()
	p.MustSubscribe(many...) // some of them are, and more than one command can name
	var wanted []<-chan struct{}
	for _, topic := range many {
		wanted = append(wanted, p.Expect(topic, "all"))
	}
	for part := range slices.Chunk(many, 100) {
		var publications []live.Publication
		for _, topic := range part {
			publications = append(publications, live.Publication{Topic: topic, Payload: []byte("all")})
		}
		if err := other.Publish(t.Context(), publications...); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(patience)
	for i, came := range wanted {
		select {
		case <-came:
		case <-deadline:
			t.Fatalf("nothing came on %s", many[i])
		}
	}
}

// races has many topics subscribed to and unsubscribed from again and again, while the commands and confirmations
// of earlier times are on their way.
func (t test) races() {
	p, other := t.startUp(), t.startUp()
	many := topics(1000)
	var workers sync.WaitGroup
	for w := range 16 {
		workers.Go(func() {
			for i := w; i < len(many); i += 16 {
				topic := many[i]
				for round := range 3 {
					for range round {
						p.Unsubscribe(topic)
						p.impatientSubscribe(topic)
					}
					p.MustSubscribe(topic)
					other.MustReach(topic, fmt.Sprint("a", round), p)
					p.Unsubscribe(topic)
					p.MustSubscribe(topic)
					other.MustReach(topic, fmt.Sprint("b", round), p)
					p.Unsubscribe(topic)
				}
			}
		})
	}
	workers.Wait()

	// Of those who wait for a topic, none waits for ever and none is told a lie.
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if err := p.Subscribe(ctx, "user:{1}", "user:{2}"); errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				p.Unsubscribe("user:{1}")
			}
		})
	}
	callers.Wait()
	p.MustSubscribe("user:{1}", "user:{2}")
	other.MustReach("user:{1}", "end", p)
	other.MustReach("user:{2}", "end", p)
}

// impatientSubscribe leaves the confirmation on its way.
func (p *Process) impatientSubscribe(topics ...live.Topic) {
	ctx, cancel := context.WithCancel(p.t.Context())
	cancel()
	_ = p.Subscribe(ctx, topics...)
}

// caller is a receiver that calls its broker.
type caller struct {
	broker live.Broker
	came   chan live.Publication
	ready  chan bool
}

func (c *caller) Received(publication live.Publication) {
	c.broker.Unsubscribe(publication.Topic)
	_ = c.broker.Up()
	c.came <- publication
}

func (c *caller) Resumed() {
	c.broker.Unsubscribe("channel:{9}")
	c.ready <- c.broker.Up()
}

func (t test) receiverCalls() {
	broker := t.Broker()
	c := &caller{broker: broker, came: make(chan live.Publication, 10), ready: make(chan bool, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := broker.Run(ctx, c); err != nil {
			t.Error(err)
		}
	})
	defer run.Wait()
	defer cancel()
	if up := <-c.ready; !up {
		t.Error("resumed and not up")
	}
	for i := range 20 {
		topic := topics(20)[i]
		if err := broker.Subscribe(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		if err := broker.Publish(t.Context(), live.Publication{Topic: topic}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-c.came:
		case <-time.After(patience):
			t.Fatalf("nothing came on %s", topic)
		}
	}
}

func (t test) contexts() {
	p := t.startUp()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Publish(ctx, live.Publication{Topic: "channel:{1}"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Publish: got %v, want %v", err, context.Canceled)
	}
	// Subscribe may be faster than its context. Where it is not, the topic is wanted all the same.
	for i, topic := range topics(200) {
		if err := p.Subscribe(ctx, topic); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Subscribe: got %v, want %v", err, context.Canceled)
		}
		if i == 0 {
			n := 0
			eventually(t.T, "a topic comes whose Subscribe was given up", func() bool {
				n++
				p.MustPublish(topic, fmt.Sprint(n))
				return p.Payloads(topic) != nil
			})
		}
	}
	if !p.Up() || p.ResumedTimes() != 1 {
		t.Errorf("up: %t, resumed %d times, want the link untouched", p.Up(), p.ResumedTimes())
	}
}
