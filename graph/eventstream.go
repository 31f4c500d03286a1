package graph

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"tidemark/graph/socket"
)

// eventStream writes server-sent events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration      // of each write
	cancel  context.CancelFunc // ends what is told of
	drained chan struct{}      // closed when the stream is to end
	slow    bool               // a write took too long

	mu       sync.Mutex
	draining bool
	over     bool // the response is no longer ours
	aborted  bool
}

var _ socket.Stream = (*eventStream)(nil)

func newEventStream(w http.ResponseWriter, timeout time.Duration, cancel context.CancelFunc) *eventStream {
	return &eventStream{w: w, control: http.NewResponseController(w), timeout: timeout, cancel: cancel, drained: make(chan struct{})}
}

// listen waits for the end of the request as long as it takes. A server's time for reading a request would end it, though
// nothing is read any more.
func (s *eventStream) listen() { _ = s.control.SetReadDeadline(time.Time{}) }

// begin lets the caller know that events will come.
func (s *eventStream) begin() error {
	header := s.w.Header()
	header.Set("Content-Type", mediaEvents+"; charset=utf-8")
	header.Set("Cache-Control", "no-cache, no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would keep events back
	s.w.WriteHeader(http.StatusOK)
	return s.write(nil)
}

// next writes a response.
func (s *eventStream) next(response *graphql.Response) error {
	body, err := encode(response)
	if err != nil {
		panic(err) // what extensions put into the response is not JSON
	}
	event := make([]byte, 0, len(body)+len("event: next\ndata: \n\n"))
	event = append(event, "event: next\ndata: "...)
	event = append(event, body...)
	return s.write(append(event, "\n\n"...))
}

// last writes a response, and that nothing will follow.
func (s *eventStream) last(response *graphql.Response) {
	if s.next(response) == nil {
		_ = s.write([]byte("event: complete\ndata: \n\n")) // the caller may be gone
	}
}

// write writes a whole event at once, or nothing but what was written before.
func (s *eventStream) write(event []byte) error {
	s.allow()
	_, err := s.w.Write(event) //nolint:gosec // these are events, and said to be
	if err == nil {
		err = s.control.Flush()
	}
	s.slow = s.slow || errors.Is(err, os.ErrDeadlineExceeded)
	return err
}

// allow gives the next write its time.
func (s *eventStream) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.aborted {
		_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	}
}

// Drain implements socket.Stream.
func (s *eventStream) Drain(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		close(s.drained)
	}
}

// Abort implements socket.Stream.
func (s *eventStream) Abort() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborted = true
	if !s.over {
		_ = s.control.SetWriteDeadline(time.Now())
	}
}

func (s *eventStream) isAborted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aborted
}

// end leaves the response to the server, with the time to say that it has ended.
func (s *eventStream) end() {
	s.allow()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
