package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// frame is a message of graphql-transport-ws.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// socket is a client's websocket. It answers pings, and keeps what comes for each operation.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
	done chan struct{} // closed when the connection has ended

	mu     sync.Mutex
	frames map[string][]frame
	woken  chan struct{} // closed, and made anew, when something comes
	code   int           // why the connection ended
	deaf   bool          // pings stay unanswered
}

// dial opens a websocket and signs in.
func (c client) dial() *socket {
	c.t.Helper()
	s, err := c.tryDial()
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c client) tryDial() (*socket, error) {
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, HandshakeTimeout: patience}
	conn, response, err := dialer.DialContext(c.t.Context(), "ws"+strings.TrimPrefix(c.url, "http")+"/graphql", nil)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	s := &socket{t: c.t, conn: conn, done: make(chan struct{}), frames: make(map[string][]frame), woken: make(chan struct{})}
	c.t.Cleanup(s.cut)
	go s.read()
	s.send(frame{Type: "connection_init", Payload: json.RawMessage(`{"authorization":"Bearer ` + c.token + `"}`)})
	select {
	case <-s.await(""):
	case <-s.done:
	case <-time.After(patience):
	}
	if acks := s.of(""); len(acks) == 0 || acks[0].Type != "connection_ack" {
		s.cut()
		return nil, fmt.Errorf("no ack, but %d %v", s.code, acks)
	}
	return s, nil
}

func (s *socket) read() {
	defer close(s.done)
	for {
		var f frame
		if err := s.conn.ReadJSON(&f); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if closed, ok := err.(*websocket.CloseError); ok { //nolint:errorlint // gorilla returns it as it is
				s.code = closed.Code
			}
			return
		}
		s.mu.Lock()
		answer := f.Type == "ping" && !s.deaf
		s.frames[f.ID] = append(s.frames[f.ID], f)
		close(s.woken)
		s.woken = make(chan struct{})
		s.mu.Unlock()
		if answer {
			s.send(frame{Type: "pong"})
		}
	}
}

// send sends a message, if the connection is still there.
func (s *socket) send(f frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.WriteJSON(f)
}

// cut drops the connection, as a network does that goes away.
func (s *socket) cut() {
	_ = s.conn.Close()
	<-s.done
}

// of returns what has come for an operation, and forgets it.
func (s *socket) of(id string) []frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	came := s.frames[id]
	delete(s.frames, id)
	return came
}

// await returns what is closed when there is something for an operation, or more than there was.
func (s *socket) await(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frames[id]) > 0 {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	return s.woken
}

// subscribe begins an operation.
func (s *socket) subscribe(id, query string, variables vars) {
	s.t.Helper()
	payload, err := json.Marshal(vars{"query": query, "variables": variables})
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(frame{Type: "subscribe", ID: id, Payload: payload})
}

// closed waits for the end of the connection, and returns its code.
func (s *socket) closed() int {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Errorf("the connection is still open after %v", patience)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code
}

// badgeChange is an event of badgeChanged.
type badgeChange struct {
	Snapshot          bool
	Badges            []badge
	RemovedChannelIDs []string
	Total             total
	StoreEpoch        string
}

const watchBadges = `subscription ($channels: [ID!], $muted: Boolean! = false) {
	badgeChanged(channelIds: $channels, includeMuted: $muted) {
		snapshot badges` + badgeFields + ` removedChannelIds total` + totalFields + ` storeEpoch } }`

// screen shows badges as a frontend does, from what a socket brings.
type screen struct {
	t      *testing.T
	socket *socket
	id     string
	badges map[string]badge
	total  total
	store  string
	events []badgeChange
	ended  *frame // an error
}

// watch opens a screen on a socket of its own.
func (c client) watch(variables vars) *screen {
	c.t.Helper()
	return c.dial().watch("badges", variables)
}

func (s *socket) watch(id string, variables vars) *screen {
	s.t.Helper()
	s.subscribe(id, watchBadges, variables)
	shown := &screen{t: s.t, socket: s, id: id, badges: make(map[string]badge)}
	shown.await("the first event is a snapshot", func() bool { return len(shown.events) > 0 })
	if len(shown.events) > 0 && !shown.events[0].Snapshot {
		s.t.Errorf("the first event is %+v", shown.events[0])
	}
	return shown
}

// look takes in what has come.
func (s *screen) look() {
	s.t.Helper()
	for _, f := range s.socket.of(s.id) {
		if f.Type != "next" {
			s.ended = &f
			continue
		}
		var r struct {
			Data   struct{ BadgeChanged badgeChange }
			Errors []problem
		}
		decode(s.t, string(f.Payload), &r)
		if len(r.Errors) > 0 {
			s.t.Errorf("an event with errors: %s", f.Payload)
		}
		s.take(r.Data.BadgeChanged)
	}
}

func (s *screen) take(change badgeChange) {
	s.events = append(s.events, change)
	if change.Snapshot {
		clear(s.badges)
	}
	s.store, s.total = change.StoreEpoch, change.Total
	for _, b := range change.Badges {
		if have, ok := s.badges[b.Channel.ID]; !ok || b.Version >= have.Version {
			s.badges[b.Channel.ID] = b
		}
	}
	for _, channel := range change.RemovedChannelIDs {
		delete(s.badges, channel)
	}
}

// await looks until something holds.
func (s *screen) await(what string, holds func() bool) { s.within(patience, what, holds) }

// within is await for what must be so soon.
func (s *screen) within(limit time.Duration, what string, holds func() bool) {
	s.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		more := s.socket.await(s.id)
		if s.look(); holds() {
			return
		}
		select {
		case <-more:
		case <-s.socket.done:
			if s.look(); !holds() {
				s.t.Errorf("the connection ended, and not so: %s", what)
			}
			return
		case <-timer.C:
			s.t.Errorf("not within %v: %s; shown are %+v, in total %+v", limit, what, s.badges, s.total)
			return
		}
	}
}

// shows waits until a channel's badge has a number, and the total too.
func (s *screen) shows(channel string, unread, inTotal int) {
	s.t.Helper()
	s.within(soon, fmt.Sprintf("channel %s shows %d, and the total %d", channel, unread, inTotal), func() bool {
		return s.badges[channel].Unread.Count == unread && s.total.Unread.Count == inTotal
	})
}

// soon is how long something live may take, on a machine that does much else.
const soon = 5 * time.Second
