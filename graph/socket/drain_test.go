package socket_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/graph/socket"
)

// drain drains on a goroutine of its own, and tells when it is done.
func (e *endpoint) drain(ctx context.Context, over time.Duration) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.transport.Drain(ctx, over)
	}()
	return done
}

func TestADrainIsSpread(t *testing.T) {
	t.Parallel()
	e := open(t, func(c *socket.Config) { c.MaxPerPerson = 1000 })
	const sockets, over = 100, 500 * time.Millisecond
	clients := make([]*client, sockets)
	for i := range clients {
		clients[i] = e.enter(t)
		clients[i].send(values)
		e.tap(t).Say("1")
		clients[i].want(next("1", `{"values":1}`))
	}
	began := time.Now()
	done := e.drain(t.Context(), over)
	var mu sync.Mutex
	var half int
	var waiting sync.WaitGroup
	for _, c := range clients {
		waiting.Go(func() {
			c.wantClose(websocket.CloseServiceRestart) // and no complete before it
			if time.Since(began) < over/2 {
				mu.Lock()
				half++
				mu.Unlock()
			}
		})
	}
	waiting.Wait()
	receive(t, done, "the drain is done")
	if took := time.Since(began); took < over-10*time.Millisecond {
		t.Errorf("all were gone after %v", took)
	}
	if half == 0 || half > sockets*3/4 {
		t.Errorf("%d of %d had been closed after half of the time", half, sockets)
	}
	if c, status := e.try(t, nil, websocket.Dialer{Subprotocols: []string{protocol}}); c != nil || status != http.StatusServiceUnavailable {
		t.Errorf("a new one is answered with %d", status)
	}
}

func TestFewSocketsAreDrainedAtOnce(t *testing.T) {
	t.Parallel()
	e := open(t)
	for range 5 {
		e.enter(t)
	}
	began := time.Now()
	receive(t, e.drain(t.Context(), time.Hour), "the drain is done")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	receive(t, e.drain(t.Context(), time.Hour), "it is done again")
}

func TestADrainLetsMutationsFinish(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(values, subscribe("2", "mutation{wait}"))
	tap := e.tap(t)
	receive(t, e.Waiting, "it waits")
	done := e.drain(t.Context(), 0)
	until(t, "nothing new is begun", func() bool {
		c.send(subscribe("3", "{me}"), `{"type":"ping"}`)
		seen := map[string]bool{}
		for range 3 {
			got := c.next()
			if seen[got] = true; got == `{"type":"pong"}` && len(seen) == 1 {
				return true
			}
		}
		if !seen[next("3", `{"me":"Person 7"}`)] || !seen[complete("3")] || !seen[`{"type":"pong"}`] {
			t.Fatal(seen)
		}
		return false
	})
	tap.Say("1")
	c.want(next("1", `{"values":1}`))
	close(e.Go)
	c.want(next("2", `{"wait":"done"}`), complete("2"))
	c.wantClose(websocket.CloseServiceRestart)
	receive(t, done, "the drain is done")
}

func TestADrainHasAnEnd(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(values, subscribe("2", "mutation{wait}"))
	tap := e.tap(t)
	receive(t, e.Waiting, "it waits")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	silent := e.dial(t) // who does not answer a close frame is not waited for
	began := time.Now()
	receive(t, e.drain(ctx, time.Hour), "the drain is done")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	receive(t, tap.Closed, "the stream is closed")
	if s := e.transport.Stats(); s.Sockets != 0 || s.Calls != 0 {
		t.Errorf("%+v", s)
	}
	if _, _, err := silent.ws.ReadMessage(); err == nil {
		t.Error("it is still open")
	}
}

// A client that does not read does not keep others from being drained.
func TestADrainDoesNotWaitForClientsThatDoNotRead(t *testing.T) {
	t.Parallel()
	e := open(t)
	slow := e.dialWith(t, nil, websocket.Dialer{Subprotocols: []string{protocol}, NetDialContext: narrow, ReadBufferSize: 512})
	slow.send(initAsAnn, values)
	tap := e.tap(t)
	tap.Flood(fmt.Sprintf(`"%32768d"`, 0))
	before, same := 0, 0
	until(t, "it is stuck", func() bool {
		taken := tap.Taken()
		if same++; taken == 0 || taken != before {
			before, same = taken, 0
		}
		return same >= 50
	})
	began := time.Now()
	receive(t, e.drain(t.Context(), 0), "the drain is done")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestDrainAndOpenAtTheSameTime(t *testing.T) {
	t.Parallel()
	e := open(t, func(c *socket.Config) { c.MaxPerPerson = 1000 })
	var opening sync.WaitGroup
	started := make(chan struct{}, 200)
	for range 8 {
		opening.Go(func() {
			for range 25 {
				started <- struct{}{}
				c, _ := e.try(t, nil, websocket.Dialer{Subprotocols: []string{protocol}})
				if c == nil {
					return
				}
				_ = c.ws.WriteMessage(websocket.TextMessage, []byte(values))
				_ = c.ws.Close()
			}
		})
	}
	for range 50 {
		<-started
	}
	receive(t, e.drain(t.Context(), time.Millisecond), "the drain is done")
	if s := e.transport.Stats(); s.Sockets != 0 {
		t.Errorf("%+v", s)
	}
	opening.Wait()
}
