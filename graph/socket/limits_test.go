package socket_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/graph/socket"
	"tidemark/internal/auth"
	"tidemark/internal/fault"
)

func TestConfigNamesTheFieldAtFault(t *testing.T) {
	t.Parallel()
	valid := socket.Config{Authenticate: func(ctx context.Context, _ string) context.Context { return ctx }, Present: present}
	if err := valid.Validate(); err != nil {
		t.Errorf("a valid configuration: %v", err)
	}
	for field, spoil := range map[string]func(*socket.Config){
		"Authenticate":  func(c *socket.Config) { c.Authenticate = nil },
		"Present":       func(c *socket.Config) { c.Present = nil },
		"MaxBytes":      func(c *socket.Config) { c.MaxBytes = -1 },
		"InitTimeout":   func(c *socket.Config) { c.InitTimeout = -1 },
		"PingEvery":     func(c *socket.Config) { c.PingEvery = -1 },
		"PongWithin":    func(c *socket.Config) { c.PongWithin = 26 * time.Second },
		"WriteTimeout":  func(c *socket.Config) { c.WriteTimeout = -1 },
		"CallTimeout":   func(c *socket.Config) { c.CallTimeout = -1 },
		"MaxOperations": func(c *socket.Config) { c.MaxOperations = -1 },
		"MaxPerPerson":  func(c *socket.Config) { c.MaxPerPerson = -1 },
	} {
		cfg := valid
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Nobody waits for a client that does not read, and it is gone when its time is up.
func TestAClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	const writeTimeout = 2 * time.Second
	for _, ponged := range []bool{false, true} {
		e := open(t, func(c *socket.Config) { c.WriteTimeout, c.PingEvery = writeTimeout, 20*time.Second })
		slow := e.dialWith(t, nil, websocket.Dialer{Subprotocols: []string{protocol}, NetDialContext: narrow, ReadBufferSize: 512})
		slow.send(initAsAnn)
		slow.want(ack)
		if ponged {
			slow.wantPing()
			slow.send(`{"type":"pong"}`)
		}
		slow.send(values)
		stuck := e.tap(t)
		slow.send(subscribe("idle", "subscription{values}"))
		idle := e.tap(t)
		began := time.Now()
		stuck.Flood(`"` + strings.Repeat("x", 32<<10) + `"`)

		other := e.enter(t)
		longest := time.Duration(0)
		for open := true; open; {
			asked := time.Now()
			other.quiet()
			longest = max(longest, time.Since(asked))
			select {
			case <-stuck.Closed:
				open = false
			default:
			}
		}
		receive(t, idle.Closed, "the other stream is closed too")
		if took := time.Since(began); took < writeTimeout || took > 2*writeTimeout {
			t.Errorf("it was gone after %v", took)
		}
		if longest > writeTimeout/2 {
			t.Errorf("somebody else waited for %v", longest)
		}
		until(t, "it is gone", func() bool { return e.transport.Stats().Sockets == 1 })
		if got := e.transport.Stats().Slow; got != 1 {
			t.Errorf("%d are counted as slow", got)
		}
	}
}

func TestAFloodOfOperations(t *testing.T) {
	t.Parallel()
	e := open(t, func(c *socket.Config) { c.MaxOperations = 10 })
	c := e.enter(t)
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() {
		for i := range 10_000 {
			c.send(subscribe(fmt.Sprint(i), "subscription{values}"))
		}
	})
	for i := 10; i < 10_000; i++ {
		c.wantError(fmt.Sprint(i), fault.TooManySubscriptions)
	}
	sending.Wait()
	if got := len(e.Opened); got != 10 {
		t.Errorf("%d streams are open", got)
	}
	c.send(complete("3"), subscribe("more", "{me}"))
	c.want(next("more", `{"me":"Person 7"}`), complete("more"))
}

// An operation that was given up counts for as long as it runs.
func TestOperationsThatComeAndGo(t *testing.T) {
	t.Parallel()
	e := open(t, func(c *socket.Config) { c.MaxOperations = 2 })
	c := e.enter(t)
	for i := range 1000 {
		c.send(subscribe(fmt.Sprint(i), "{hello}"), complete(fmt.Sprint(i)))
		if s := e.transport.Stats(); s.Calls > 2 {
			t.Fatalf("%+v", s)
		}
	}
	c.send(`{"type":"ping"}`)
	for c.next() != `{"type":"pong"}` {
	}
}

func TestTheSizeOfAMessageIsBounded(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(subscribe("1", "{me}"+strings.Repeat(" ", 500<<10)))
	c.want(next("1", `{"me":"Person 7"}`), complete("1"))

	c.send(subscribe("1", "{me}"+strings.Repeat(" ", 1<<20)))
	c.wantClose(websocket.CloseMessageTooBig)

	c = e.dial(t)
	_ = c.ws.WriteMessage(websocket.TextMessage, []byte(strings.Repeat(" ", 8<<20))) // it may be cut off
	c.wantClose(websocket.CloseMessageTooBig)
}

func TestOnePersonHasOnlySoManySockets(t *testing.T) {
	t.Parallel()
	e := open(t, func(c *socket.Config) { c.MaxPerPerson = 3 })
	var mine []*client
	for range 3 {
		mine = append(mine, e.enter(t))
	}
	c := e.dial(t)
	c.send(initAsAnn)
	if reason := c.wantClose(websocket.CloseTryAgainLater); !strings.Contains(reason, "3 connections") {
		t.Error(reason)
	}
	other := e.dial(t)
	other.ann = token(t, "8", time.Now().Add(time.Hour))
	other.send(initAsAnn)
	other.want(ack)

	if err := mine[0].ws.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "one is gone", func() bool { return e.transport.Stats().Sockets == 3 })
	e.enter(t)
}

func TestAConnectionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.dial(t)
	c.ann = token(t, "7", time.Now().Add(-28*time.Second)) // which is not yet the end: clocks may differ by 30 seconds
	c.send(initAsAnn, values)
	c.want(ack)
	tap := e.tap(t)
	if reason := c.wantClose(4403); reason != "the token has expired" {
		t.Error(reason)
	}
	receive(t, tap.Closed, "the stream is closed")
}

// While nobody can be known, nobody is told to sign in again.
func TestTheIssuersKeysCannotBeHad(t *testing.T) {
	t.Parallel()
	issuer := httptest.NewServer(http.NotFoundHandler())
	defer issuer.Close()
	verifier, err := auth.NewVerifier(auth.Config{JWKSURL: issuer.URL, HTTPClient: issuer.Client(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer verifier.Close()
	e := open(t, func(c *socket.Config) { c.Authenticate = verifier.Authenticate })
	c := e.dial(t)
	c.ann = "eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJzdWIiOiI3In0.eA" // with a key x, whoever knows that
	c.send(initAsAnn)
	c.wantClose(websocket.CloseTryAgainLater)
}

func TestClientsAreAskedForASignOfLife(t *testing.T) {
	t.Parallel()
	const within = time.Second
	for pongs := range 4 {
		t.Run(fmt.Sprintf("silent after %d pongs", pongs), func(t *testing.T) {
			t.Parallel()
			e := open(t, func(c *socket.Config) { c.PingEvery, c.PongWithin = within+100*time.Millisecond, within })
			c := e.enter(t)
			c.send(values)
			tap := e.tap(t)
			for range pongs {
				c.wantPing()
				c.send(`{"type":"pong"}`)
			}
			c.wantPing()
			asked := time.Now()
			if reason := c.wantClose(4408); reason != "pong timeout" {
				t.Error(reason)
			}
			if waited := time.Since(asked); waited < within/2 {
				t.Errorf("it was waited for %v only", waited)
			}
			receive(t, tap.Closed, "the stream is closed")
			until(t, "it is gone", func() bool { return e.transport.Stats().Sockets == 0 })
			if s := e.transport.Stats(); s.Silent != 1 || s.Slow != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestTheFirstPingComesEarly(t *testing.T) {
	t.Parallel()
	c := open(t).enter(t)
	began := time.Now()
	c.wantPing()
	if waited := time.Since(began); waited < 2*time.Second || waited > 6*time.Second {
		t.Errorf("it came after %v", waited)
	}
}
