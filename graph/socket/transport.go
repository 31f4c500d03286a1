package socket

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/internal/fault"
	"tidemark/internal/id"
)

const (
	// protocol is the one that is spoken. Its predecessor graphql-ws, which is asked for by its own name or by none,
	// tells nobody why a connection ends.
	protocol = "graphql-transport-ws"
	// Most messages of clients are a few hundred bytes, and most of ours fit into one buffer.
	readBuffer, writeBuffer = 512, 1024
	// handshakeTimeout bounds the answer to an upgrade.
	handshakeTimeout = 5 * time.Second
)

// Transport is the graphql.Transport of websockets.
type Transport struct {
	config   Config
	upgrader websocket.Upgrader
	registry *registry
	frames   sync.Pool

	sockets, streams     atomic.Int64
	calls, subscriptions atomic.Int64
	refused              atomic.Uint64
	slow, silent         atomic.Uint64
}

var _ graphql.Transport = (*Transport)(nil)

// New returns a transport that cfg describes, which must be valid.
func New(cfg Config) *Transport {
	t := &Transport{config: cfg.withDefaults()}
	t.registry = newRegistry(t.config.MaxPerPerson)
	t.upgrader = websocket.Upgrader{
		HandshakeTimeout: handshakeTimeout,
		ReadBufferSize:   readBuffer,
		WriteBufferSize:  writeBuffer,
		WriteBufferPool:  new(sync.Pool),
		Subprotocols:     []string{protocol},
		CheckOrigin:      func(*http.Request) bool { return true }, // whoever serves this has refused others before
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			w.Header().Set("Sec-Websocket-Version", "13")
			t.refuse(w, r, status, fault.New(fault.BadUserInput, "%s", reason))
		},
	}
	return t
}

// Supports implements graphql.Transport.
func (t *Transport) Supports(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// Do implements graphql.Transport. It returns when the connection is no longer HTTP's.
func (t *Transport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	if t.registry.isDraining() {
		t.refused.Add(1)
		t.refuse(w, r, http.StatusServiceUnavailable, errDraining())
		return
	}
	ws, err := t.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	t.serve(r.Context(), ws, exec)
}

// Enter lets a stream of another transport in, for as long as it takes until leave is called: it counts as one of its
// person's, and ends with the others in a drain.
func (t *Transport) Enter(user id.User, s Stream) (leave func(), refusal *fault.Error) {
	if refusal := t.registry.admit(user); refusal != nil {
		t.refused.Add(1)
		return nil, refusal
	}
	if !t.registry.enter(s) {
		t.registry.dismiss(user)
		t.refused.Add(1)
		return nil, errDraining()
	}
	t.streams.Add(1)
	t.config.Presence.Connected(user)
	return func() {
		t.config.Presence.Disconnected(user)
		t.streams.Add(-1)
		t.registry.dismiss(user)
		t.registry.leave(s)
	}, nil
}

// TooSlow counts a stream of another transport that was ended because its client did not read.
func (t *Transport) TooSlow() { t.slow.Add(1) }

// Drain lets nobody in any more, and ends all connections so that their clients come back elsewhere: one by one and
// spread over the given time, as far as that is no more than 10 ms for each. Queries and mutations that run may come to
// their end first, as long as ctx has not ended; then all that is left ends at once. When Drain returns, nothing
// that the transport started runs any more.
func (t *Transport) Drain(ctx context.Context, over time.Duration) { t.registry.drain(ctx, over) }

// Stats is what goes on, and what has been since the start.
type Stats struct {
	Sockets       int64 // open websockets
	Streams       int64 // open event streams
	Calls         int64 // queries, mutations and the opening of subscriptions under way on websockets
	Subscriptions int64 // open subscriptions of websockets

	Refused uint64 // connections turned away: without a good token, one too many of a person, or during a drain
	Slow    uint64 // connections ended because their client did not read
	Silent  uint64 // websockets ended because their client did not answer a ping
}

// Stats returns the current numbers.
func (t *Transport) Stats() Stats {
	return Stats{
		Sockets: t.sockets.Load(), Streams: t.streams.Load(), Calls: t.calls.Load(), Subscriptions: t.subscriptions.Load(),
		Refused: t.refused.Load(), Slow: t.slow.Load(), Silent: t.silent.Load(),
	}
}

// refuse answers a request that does not become a socket.
func (t *Transport) refuse(w http.ResponseWriter, r *http.Request, status int, reason error) {
	body, err := json.Marshal(map[string]gqlerror.List{"errors": {t.config.Present(r.Context(), reason)}})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may be gone
}

func errDraining() *fault.Error {
	return &fault.Error{Code: fault.Unavailable, Message: "the server restarts, try again", RetryAfter: time.Second}
}
