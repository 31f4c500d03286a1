package graph_test

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tidemark/graph"
	"tidemark/internal/id"
)

// attendance counts what is said of people's connections.
type attendance struct{ came, ended atomic.Int64 }

func (a *attendance) Connected(id.User)    { a.came.Add(1) }
func (a *attendance) Disconnected(id.User) { a.ended.Add(1) }

// However a stream of events ends, its end is told once.
func TestPresenceOfAStreamOfEvents(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		body   string
		expiry time.Duration // of the token; zero: an hour
		by     func(*feedServer, *listener)
	}{
		"its reader leaves": {body: watch, by: func(_ *feedServer, l *listener) { l.close() }},
		"its token ends":    {body: watch, expiry: -28 * time.Second, by: func(_ *feedServer, l *listener) { l.ended() }},
		"it is drained":     {body: watch, by: func(f *feedServer, l *listener) { f.handler.Drain(l.t.Context(), 0) }},
		"it is refused":     {body: `{"query":"subscription{refusedStream}"}`, by: func(*feedServer, *listener) {}},
		"the drain is over": {body: watch, by: func(f *feedServer, l *listener) {
			over, cancel := context.WithCancel(l.t.Context())
			cancel()
			f.handler.Drain(over, 0)
		}},
		"its reader does not read": {body: watch, by: func(f *feedServer, l *listener) {
			within(l.t, f.Opened, "the stream is opened").Flood(`"` + strings.Repeat("x", 64<<10) + `"`)
		}},
		"it panics": {body: watch, by: func(f *feedServer, l *listener) {
			f.Panic()
			within(l.t, f.Opened, "the stream is opened").Say("1")
			l.ended()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard := &attendance{}
			f := serveFeeds(t, func(c *graph.Config) { c.Presence, c.Sockets.WriteTimeout = heard, time.Second })
			token := tokenUntil(t, time.Now().Add(cmp.Or(ends.expiry, time.Hour)))
			l := f.listen(t, ends.body, with("Authorization", "Bearer "+token))
			if n := heard.came.Load(); n != 1 {
				t.Errorf("%d came", n)
			}
			ends.by(f, l)
			until(t, "it is told", func() bool { return heard.ended.Load() == 1 })
			until(t, "it is gone", func() bool { return f.handler.SocketStats().Streams == 0 })
			if came, ended := heard.came.Load(), heard.ended.Load(); came != 1 || ended != 1 {
				t.Errorf("%d came and %d ended", came, ended)
			}
		})
	}
}

// A query that is answered by an event is no connection that stays open.
func TestAnAnswerByEventIsNoPresence(t *testing.T) {
	t.Parallel()
	heard := &attendance{}
	f := serveFeeds(t, func(c *graph.Config) { c.Presence = heard })
	f.listen(t, `{"query":"{hello}"}`).event()
	if n := heard.came.Load(); n != 0 {
		t.Errorf("%d came", n)
	}
}
