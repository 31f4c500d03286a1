package socket_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/graph/socket"
	"tidemark/internal/id"
)

// attendance counts what is said of people's connections.
type attendance struct {
	mu          sync.Mutex
	came, ended map[id.User]int
}

func (a *attendance) Connected(user id.User) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.came[user]++
}

func (a *attendance) Disconnected(user id.User) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended[user]++
}

func (a *attendance) of(user id.User) (came, ended int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.came[user], a.ended[user]
}

// attended serves sockets, and listens to who is connected.
func attended(t *testing.T, options ...func(*socket.Config)) (*endpoint, *attendance) {
	t.Helper()
	a := &attendance{came: make(map[id.User]int), ended: make(map[id.User]int)}
	return open(t, append(options, func(c *socket.Config) { c.Presence = a })...), a
}

// However a connection ends, its end is told once.
func TestPresenceOfAConnection(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		config func(*socket.Config)
		by     func(*endpoint, *client)
	}{
		"the client leaves": {by: func(_ *endpoint, c *client) {
			farewell := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			if err := c.ws.WriteControl(websocket.CloseMessage, farewell, time.Now().Add(patience)); err != nil {
				c.tb.Fatal(err)
			}
			c.wantClose(websocket.CloseNormalClosure)
		}},
		"the network fails":    {by: func(_ *endpoint, c *client) { _ = c.ws.NetConn().Close() }},
		"a message is no JSON": {by: func(_ *endpoint, c *client) { c.send("x"); c.wantClose(4400) }},
		"it signs in twice":    {by: func(_ *endpoint, c *client) { c.send(initAsAnn); c.wantClose(4429) }},
		"a drain":              {by: func(e *endpoint, c *client) { receive(c.tb, e.drain(c.tb.Context(), 0), "the drain is done") }},
		"the end of a drain": {by: func(e *endpoint, c *client) {
			c.send(subscribe("2", "mutation{wait}"))
			receive(c.tb, e.Waiting, "it waits")
			over, cancel := context.WithCancel(c.tb.Context())
			cancel()
			receive(c.tb, e.drain(over, 0), "the drain is done")
		}},
		"it does not read": {
			config: func(c *socket.Config) { c.WriteTimeout = time.Second },
			by: func(e *endpoint, c *client) {
				c.send(values)
				e.tap(c.tb).Flood(`"` + strings.Repeat("x", 32<<10) + `"`)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ends.config == nil {
				ends.config = func(*socket.Config) {}
			}
			e, heard := attended(t, ends.config)
			c := e.dialWith(t, nil, websocket.Dialer{Subprotocols: []string{protocol}, NetDialContext: narrow, ReadBufferSize: 512})
			if came, _ := heard.of(7); came != 0 {
				t.Error("nobody is known, and somebody there")
			}
			c.send(initAsAnn)
			c.want(ack)
			if came, ended := heard.of(7); came != 1 || ended != 0 {
				t.Errorf("%d came and %d ended", came, ended)
			}
			ends.by(e, c)
			until(t, "it is gone", func() bool { return e.transport.Stats().Sockets == 0 })
			if came, ended := heard.of(7); came != 1 || ended != 1 {
				t.Errorf("%d came and %d ended", came, ended)
			}
		})
	}
}

// L06: who is silent is gone within two pings.
func TestPresenceOfASilentClient(t *testing.T) {
	t.Parallel()
	const every = 2 * time.Second
	e, heard := attended(t, func(c *socket.Config) { c.PingEvery, c.PongWithin = every, every })
	c := e.enter(t)
	began := time.Now()
	c.wantPing()
	until(t, "it is told", func() bool {
		_, ended := heard.of(7)
		return ended == 1
	})
	if took := time.Since(began); took > 2*every+every/4 {
		t.Errorf("it took %v", took)
	}
}

func TestPresenceEndsWithTheToken(t *testing.T) {
	t.Parallel()
	e, heard := attended(t)
	c := e.dial(t)
	c.ann = token(t, "7", time.Now().Add(-28*time.Second)) // which is not yet the end: clocks may differ by 30 seconds
	c.send(initAsAnn)
	c.want(ack)
	c.wantClose(4403)
	until(t, "it is told", func() bool {
		came, ended := heard.of(7)
		return came == 1 && ended == 1
	})
}

// Of who is not let in nothing is said.
func TestPresenceOfWhoIsTurnedAway(t *testing.T) {
	t.Parallel()
	e, heard := attended(t, func(c *socket.Config) { c.MaxPerPerson = 1 })
	e.enter(t)
	second := e.dial(t)
	second.send(initAsAnn)
	second.wantClose(websocket.CloseTryAgainLater)
	unknown := e.dial(t)
	unknown.send(`{"type":"connection_init"}`)
	unknown.wantClose(4403)
	until(t, "they are gone", func() bool { return e.transport.Stats().Sockets == 1 })
	if came, ended := heard.of(7); came != 1 || ended != 0 {
		t.Errorf("%d came and %d ended", came, ended)
	}
	if _, status := e.try(t, http.Header{"Authorization": {"Bearer " + second.ann}}, websocket.Dialer{Subprotocols: []string{protocol}}); status != http.StatusSwitchingProtocols {
		t.Error(status)
	}
	if came, _ := heard.of(7); came != 1 {
		t.Error("who has not introduced themselves is there")
	}
}
