package brokertest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/internal/live"
)

const (
	// patience bounds every wait for something that is sure to come.
	patience = 30 * time.Second
	// promptly bounds what must not wait for a server.
	promptly = 2 * time.Second
)

// Process is a broker that runs, and its receiver, which remembers what it was told.
type Process struct {
	live.Broker
	t       *testing.T
	stop    context.CancelFunc
	stopped chan struct{} // closed when Run has returned
	busy    atomic.Bool   // the receiver is being called
	resumed atomic.Int64

	mu       sync.Mutex
	received map[live.Topic][]string
	expected map[expectation]chan struct{}
}

type expectation struct {
	topic   live.Topic
	payload string
}

// Start runs a broker until the test ends, and does not wait for it to be up.
func Start(t *testing.T, broker live.Broker) *Process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) //nolint:gosec // Stop calls it
	p := &Process{
		Broker:   broker,
		t:        t,
		stop:     cancel,
		stopped:  make(chan struct{}),
		received: map[live.Topic][]string{},
		expected: map[expectation]chan struct{}{},
	}
	go func() {
		defer close(p.stopped)
		if err := broker.Run(ctx, p); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(p.Stop)
	return p
}

// StartUp is Start and waits for the broker to be up.
func StartUp(t *testing.T, broker live.Broker) *Process {
	t.Helper()
	p := Start(t, broker)
	p.AwaitResumed(1)
	return p
}

// Stop ends the broker, which has to happen promptly.
func (p *Process) Stop() {
	p.t.Helper()
	p.StopAfter(0)
}

// StopAfter is Stop after a time.
func (p *Process) StopAfter(wait time.Duration) {
	p.t.Helper()
	defer time.AfterFunc(wait, p.stop).Stop()
	select {
	case <-p.stopped:
	case <-time.After(wait + promptly):
		p.t.Errorf("Run goes on %v after its context has ended", promptly)
		<-p.stopped
	}
	if p.Up() {
		p.t.Error("up after Run has returned")
	}
}

// Received is for the broker.
func (p *Process) Received(publication live.Publication) {
	p.enter()
	defer p.busy.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	payload := string(publication.Payload)
	p.received[publication.Topic] = append(p.received[publication.Topic], payload)
	key := expectation{publication.Topic, payload}
	if came, ok := p.expected[key]; ok {
		delete(p.expected, key)
		close(came)
	}
	clear(publication.Payload) // it is the receiver's own
}

// Resumed is for the broker.
func (p *Process) Resumed() {
	p.enter()
	defer p.busy.Store(false)
	p.resumed.Add(1)
}

func (p *Process) enter() {
	if p.busy.Swap(true) {
		p.t.Error("the receiver is called while it is being called")
	}
}

// MustSubscribe subscribes to topics, with patience.
func (p *Process) MustSubscribe(topics ...live.Topic) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := p.Subscribe(ctx, topics...); err != nil {
		p.t.Error(err)
	}
}

// MustPublish publishes payloads on a topic, in one call.
func (p *Process) MustPublish(topic live.Topic, payloads ...string) {
	p.t.Helper()
	publications := make([]live.Publication, len(payloads))
	for i, payload := range payloads {
		publications[i] = live.Publication{Topic: topic, Payload: []byte(payload)}
	}
	if err := p.Publish(p.t.Context(), publications...); err != nil {
		p.t.Error(err)
	}
}

// Expect returns a channel that is closed when the payload comes.
func (p *Process) Expect(topic live.Topic, payload string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	came := make(chan struct{})
	p.expected[expectation{topic, payload}] = came
	return came
}

// MustReach publishes a payload that no other publication has, and waits until it has come to all receivers.
func (p *Process) MustReach(topic live.Topic, payload string, receivers ...*Process) {
	p.t.Helper()
	var all []<-chan struct{}
	for _, receiver := range receivers {
		all = append(all, receiver.Expect(topic, payload))
	}
	p.MustPublish(topic, payload)
	deadline := time.After(patience)
	for i, came := range all {
		select {
		case <-came:
		case <-deadline:
			p.t.Errorf("%q on %s has not reached receiver %d within %v", payload, topic, i, patience)
			return
		}
	}
}

// Payloads returns what has come on a topic.
func (p *Process) Payloads(topic live.Topic) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.received[topic])
}

// ResumedTimes returns how often the link has come up.
func (p *Process) ResumedTimes() int { return int(p.resumed.Load()) }

// AwaitResumed waits until the link has come up so many times, and is up.
func (p *Process) AwaitResumed(times int) {
	p.t.Helper()
	eventually(p.t, "the link is up again", func() bool { return p.ResumedTimes() >= times && p.Up() })
}

// AwaitDown waits until the link is known to be down.
func (p *Process) AwaitDown() {
	p.t.Helper()
	eventually(p.t, "the link is down", func() bool { return !p.Up() })
}

// eventually waits until something has become true. Where it does not, the test ends.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if now := <-ticker.C; now.After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
