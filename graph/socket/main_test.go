package socket_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/goleak"

	"tidemark/graph/socket"
	"tidemark/graph/socket/sockettest"
	"tidemark/internal/auth"
	"tidemark/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret   = "a secret that is long enough for HS256"
	protocol = "graphql-transport-ws"
	// patience is how long something that must come is waited for.
	patience = 20 * time.Second

	initAsAnn = `{"type":"connection_init","payload":{"Authorization":"Bearer ANN"}}`
	ack       = `{"type":"connection_ack"}`
	ping      = `{"type":"ping"}`
	values    = `{"id":"1","type":"subscribe","payload":{"query":"subscription{values}"}}`
	hello     = `{"id":"1","type":"subscribe","payload":{"query":"{hello}"}}`
)

// endpoint is a server of sockets, on an API that does as a test says.
type endpoint struct {
	*sockettest.API
	transport *socket.Transport
	server    *httptest.Server
}

// open serves sockets until the test ends. Each option changes their configuration.
func open(tb testing.TB, options ...func(*socket.Config)) *endpoint {
	tb.Helper()
	verifier, err := auth.NewVerifier(auth.Config{Secret: secret})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := socket.Config{Authenticate: verifier.Authenticate, Present: present, Logger: slog.New(slog.DiscardHandler)}
	for _, option := range options {
		option(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		tb.Fatal(err)
	}
	e := &endpoint{API: sockettest.New(), transport: socket.New(cfg)}
	api := handler.New(e.API)
	api.AddTransport(e.transport)
	api.SetErrorPresenter(present)
	api.SetQueryCache(lru.New[*ast.QueryDocument](100))
	e.server = httptest.NewUnstartedServer(verifier.Middleware(api))
	e.server.Config.ReadTimeout, e.server.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond // must not matter
	e.server.Start()
	tb.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		e.transport.Drain(over, 0)
		e.server.Close()
		if is, want := e.transport.Stats(), (socket.Stats{}); is.Sockets != want.Sockets || is.Calls != want.Calls || is.Subscriptions != want.Subscriptions {
			tb.Errorf("after the drain there is %+v", is)
		}
	})
	return e
}

func present(_ context.Context, err error) *gqlerror.Error {
	var given *gqlerror.Error
	if errors.As(err, &given) && given.Err == nil {
		return given
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fault.NotAvailable(err)
	}
	return &gqlerror.Error{Message: fault.MessageOf(err), Extensions: map[string]any{"code": string(fault.CodeOf(err))}}
}

// token is one of a person.
func token(tb testing.TB, user string, expiry time.Time) string {
	tb.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": user, "name": "Person " + user, "exp": expiry.Unix()}).
		SignedString([]byte(secret))
	if err != nil {
		tb.Fatal(err)
	}
	return signed
}

// client is what talks to an endpoint.
type client struct {
	tb  testing.TB
	ws  *websocket.Conn
	ann string // what stands for ANN in messages
}

// dial connects, with the protocol unless others are named.
func (e *endpoint) dial(tb testing.TB, protocols ...string) *client {
	tb.Helper()
	if protocols == nil {
		protocols = []string{protocol}
	}
	return e.dialWith(tb, nil, websocket.Dialer{Subprotocols: protocols})
}

func (e *endpoint) dialWith(tb testing.TB, header http.Header, dialer websocket.Dialer) *client {
	tb.Helper()
	c, status := e.try(tb, header, dialer)
	if c == nil {
		tb.Fatalf("the server answered with status %d", status)
	}
	return c
}

// try returns a client, or the status of the server's refusal; zero if there was none.
func (e *endpoint) try(tb testing.TB, header http.Header, dialer websocket.Dialer) (*client, int) {
	tb.Helper()
	ws, response, err := dialer.DialContext(tb.Context(), "ws"+strings.TrimPrefix(e.server.URL, "http"), header)
	status := 0
	if response != nil {
		_ = response.Body.Close()
		status = response.StatusCode
	}
	if err != nil {
		return nil, status
	}
	tb.Cleanup(func() { _ = ws.Close() })
	return &client{tb: tb, ws: ws, ann: token(tb, "7", time.Now().Add(time.Hour))}, status
}

// enter connects as Ann.
func (e *endpoint) enter(tb testing.TB) *client {
	tb.Helper()
	c := e.dial(tb)
	c.send(initAsAnn)
	c.want(ack)
	return c
}

// tap is the stream that was opened next.
func (e *endpoint) tap(tb testing.TB) *sockettest.Tap {
	tb.Helper()
	return receive(tb, e.Opened, "a stream is opened")
}

func receive[T any](tb testing.TB, from <-chan T, what string) T {
	tb.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		tb.Fatalf("waited in vain until %s", what)
		panic("unreachable")
	}
}

// until waits for what no channel tells of.
func until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain until %s", what)
		}
		<-tick.C
	}
}

func (c *client) send(messages ...string) {
	c.tb.Helper()
	for _, m := range messages {
		if err := c.ws.WriteMessage(websocket.TextMessage, []byte(strings.ReplaceAll(m, "ANN", c.ann))); err != nil {
			c.tb.Fatalf("send %.80s: %v", m, err)
		}
	}
}

// next is the message that comes next. Pings are answered.
func (c *client) next() string {
	c.tb.Helper()
	for {
		got := c.read()
		if got != ping {
			return got
		}
		c.send(`{"type":"pong"}`)
	}
}

// wantPing fails unless a ping comes next.
func (c *client) wantPing() {
	c.tb.Helper()
	if got := c.read(); got != ping {
		c.tb.Fatalf("got %s, want a ping", got)
	}
}

func (c *client) read() string {
	c.tb.Helper()
	if err := c.ws.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.tb.Fatal(err)
	}
	_, got, err := c.ws.ReadMessage()
	if err != nil {
		c.tb.Fatalf("instead of a message: %v", err)
	}
	return string(got)
}

// want fails unless just these messages come next.
func (c *client) want(messages ...string) {
	c.tb.Helper()
	for _, want := range messages {
		if got := c.next(); got != want {
			c.tb.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// wantError fails unless the next message ends an operation with an error of the code.
func (c *client) wantError(id string, code fault.Code) {
	c.tb.Helper()
	got := c.next()
	var m struct {
		ID, Type string
		Payload  []struct {
			Message    string
			Extensions struct{ Code fault.Code }
		}
	}
	if err := json.Unmarshal([]byte(got), &m); err != nil || m.ID != id || m.Type != "error" || len(m.Payload) != 1 || m.Payload[0].Extensions.Code != code {
		c.tb.Fatalf("got %s\nwant an error %s of %s", got, code, id)
	}
}

// quiet fails if anything was sent that has not been read: the answer to a ping comes after it.
func (c *client) quiet() {
	c.tb.Helper()
	c.send(`{"type":"ping","payload":{"quiet":true}}`)
	c.want(`{"type":"pong","payload":{"quiet":true}}`)
}

// wantClose fails unless the connection ends with the code now, and returns the reason.
func (c *client) wantClose(code int) string {
	c.tb.Helper()
	if err := c.ws.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.tb.Fatal(err)
	}
	_, got, err := c.ws.ReadMessage()
	for err == nil && string(got) == ping {
		_, got, err = c.ws.ReadMessage()
	}
	var closed *websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != code {
		c.tb.Fatalf("got %s and %v, want close %d", got, err, code)
	}
	return closed.Text
}

func subscribe(id, query string) string {
	return fmt.Sprintf(`{"id":%q,"type":"subscribe","payload":{"query":%q}}`, id, query)
}

func next(id, data string) string {
	return fmt.Sprintf(`{"id":%q,"type":"next","payload":{"data":%s}}`, id, data)
}

func complete(id string) string { return fmt.Sprintf(`{"id":%q,"type":"complete"}`, id) }

// narrow makes a client that the kernel keeps little for.
func narrow(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, network, address)
	if err == nil {
		err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	return c, err
}
