package graph_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/graph"
	"tidemark/internal/fault"
)

func TestOperationsAsEvents(t *testing.T) {
	t.Parallel()
	f := serveFeeds(t)
	const failed = `{"errors":[{"message":"refused","extensions":{"code":"FORBIDDEN"}}]}`
	for body, want := range map[string]string{
		`{"query":"{me}"}`:                                `{"data":{"me":""}}`,
		`{"query":"{hello}"}`:                             "{\"data\":{\"hello\":\"world \\u2028 <b>\"}}",
		`{"query":"{refused}"}`:                           failed,
		`{"query":"subscription{refusedStream}"}`:         failed,
		`{"query":"{nope}"}`:                              `{"errors":[{"message":"Cannot query field \"nope\" on type \"Query\".","locations":[{"line":1,"column":2}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`,
		`{"query":"subscription{values @skip(if:true)}"}`: `{"errors":[{"message":"the subscription skips its only field","extensions":{"code":"BAD_USER_INPUT"}}]}`,
		`{"query":"query($x:Any){echo(x:$x)}","variables":{"x":9223372036854775807}}`: `{"data":{"echo":"json.Number 9223372036854775807"}}`,
	} {
		got := f.listen(t, body)
		if got.response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", body, got.response.Status)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no",
			"X-Content-Type-Options": "nosniff",
		} {
			if is := got.response.Header.Get(name); is != want {
				t.Errorf("%s: %s is %q, want %q", body, name, is, want)
			}
		}
		got.events(nextEvent(want), complete)
		got.ended()
	}
	unknown := f.listen(t, watch, with("Authorization", ""))
	if got := unknown.event(); !strings.Contains(got, `"code":"UNAUTHENTICATED"`) {
		t.Error(got)
	}
	unknown.events(complete)
}

// Who can read either is sent events only where they are needed, and who is badly understood is told in JSON.
func TestWhenEventsAreSent(t *testing.T) {
	t.Parallel()
	f := serveFeeds(t, func(c *graph.Config) { c.Limits.BodyBytes = 200 })
	for _, test := range []struct {
		accept, body string
		status       int
		media        string
	}{
		{eventType, `{"query":"{me}"}`, 200, eventType},
		{eventType + ", application/json;q=0.5", `{"query":"{me}"}`, 200, eventType},
		{eventType + ", application/json", `{"query":"{me}"}`, 200, "application/json"},
		{graphqlJSON + ", application/json, " + eventType + ", multipart/mixed", `{"query":"{nope}"}`, 400, graphqlJSON},
		{eventType + ", application/json", watch, 200, eventType},
		{"application/json, " + eventType, `{"query":"subscription{refusedStream}"}`, 200, "application/json"},
		{eventType + ";q=0.5, application/json", watch, 400, "application/json"},
		{"*/*", watch, 400, "application/json"},
		{eventType + ";q=0", watch, 406, "application/json"},
		{eventType, `{"query":`, 400, "application/json"},
		{eventType, `{}`, 400, "application/json"},
		{eventType, `{"query":"{me}` + strings.Repeat(" ", 200) + `"}`, 413, "application/json"},
	} {
		got := f.listen(t, test.body, with("Accept", test.accept))
		if got.response.StatusCode != test.status || got.response.Header.Get("Content-Type") != test.media+"; charset=utf-8" {
			t.Errorf("%s %.60s: %s %s", test.accept, test.body, got.response.Status, got.response.Header.Get("Content-Type"))
		}
	}
	plain := f.listen(t, watch, with("Accept", "application/json"))
	if got, _ := io.ReadAll(plain.lines); !strings.Contains(string(got), "websocket") || !strings.Contains(string(got), "Accept: text/event-stream") {
		t.Errorf("%s", got)
	}
	form := f.listen(t, "query={me}", with("Content-Type", "application/x-www-form-urlencoded"))
	if form.response.StatusCode != http.StatusUnsupportedMediaType {
		t.Error(form.response.Status)
	}
}

func TestEventsByGet(t *testing.T) {
	t.Parallel()
	f := serveFeeds(t)
	by := func(query string) func(*http.Request) {
		return func(r *http.Request) {
			r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
			r.URL.RawQuery = url.Values{"query": {query}}.Encode()
		}
	}
	f.listen(t, "", by("{me}")).events(nextEvent(`{"data":{"me":""}}`), complete)
	stream := f.listen(t, "", by("subscription{values}"))
	within(t, f.Opened, "the stream is opened").Say("1")
	stream.events(nextEvent(`{"data":{"values":1}}`))

	got := f.listen(t, "", by("mutation{wait}"))
	if got.response.StatusCode != http.StatusMethodNotAllowed || got.response.Header.Get("Allow") != "POST" {
		t.Errorf("%s %v", got.response.Status, got.response.Header)
	}
	plain := f.listen(t, "", by("subscription{values}"), with("Accept", graphqlJSON))
	if plain.response.StatusCode != http.StatusBadRequest {
		t.Error(plain.response.Status)
	}
}

// The server's deadlines for requests, which are shorter here than the pauses, do not end a stream.
func TestAStreamOfEvents(t *testing.T) {
	t.Parallel()
	f := serveFeeds(t, func(c *graph.Config) { c.Sockets.PingEvery = 150 * time.Millisecond })
	l := f.listen(t, watch)
	tap := within(t, f.Opened, "the stream is opened")
	for range 3 {
		if got := l.event(); got != keepAlive {
			t.Fatalf("got %q while nothing was to be told", got)
		}
		tap.Say("1")
		l.events(nextEvent(`{"data":{"values":1}}`))
	}
	var saying sync.WaitGroup
	saying.Go(func() {
		for range 1000 {
			tap.Say("2")
		}
		tap.Say("3")
	})
	for got := ""; got != nextEvent(`{"data":{"values":3}}`); {
		if got = l.event(); got != keepAlive && got != nextEvent(`{"data":{"values":2}}`) && !strings.Contains(got, "3") {
			t.Fatal(got)
		}
	}
	saying.Wait()
	if s := f.handler.SocketStats(); s.Streams != 1 {
		t.Errorf("%+v", s)
	}
	l.close()
	within(t, tap.Closed, "the stream is closed, as its reader is gone")
}

func TestAStreamOfEventsTriesAgain(t *testing.T) {
	t.Parallel()
	f := serveFeeds(t)
	l := f.listen(t, watch)
	tap := within(t, f.Opened, "the stream is opened")
	f.Fail(fault.Unavailable)
	tap.Say("1")
	until(t, "it was tried", func() bool { return tap.Taken() > 0 })
	tap.Say("2")
	f.Fail("")
	for got := ""; got != nextEvent(`{"data":{"values":2}}`); {
		if got = l.event(); strings.Contains(got, "errors") {
			t.Fatal(got)
		}
	}
	if n := tap.Taken(); n > 3 {
		t.Errorf("it was tried %d times", n)
	}
	f.Fail(fault.Forbidden)
	tap.Say("3")
	l.events(nextEvent(`{"errors":[{"message":"fails","extensions":{"code":"FORBIDDEN"}}],"data":null}`))
	tap.End(fault.NoChannel())
	l.events(nextEvent(`{"errors":[{"message":"no such channel","extensions":{"argument":"channelId","code":"NOT_FOUND"}}]}`), complete)
	l.ended()
	within(t, tap.Closed, "the stream is closed")
}

func TestAStreamOfEventsEndsWithoutComplete(t *testing.T) {
	t.Parallel()
	t.Run("with its token", func(t *testing.T) {
		t.Parallel()
		f := serveFeeds(t)
		l := f.listen(t, watch, with("Authorization", "Bearer "+tokenUntil(t, time.Now().Add(-28*time.Second))))
		tap := within(t, f.Opened, "the stream is opened")
		tap.Say("1")
		l.events(nextEvent(`{"data":{"values":1}}`))
		l.ended()
		within(t, tap.Closed, "the stream is closed")
	})
	t.Run("by a panic", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		f := serveFeeds(t, logged(&log))
		l := f.listen(t, watch)
		tap := within(t, f.Opened, "the stream is opened")
		f.Panic()
		tap.Say("1")
		l.ended()
		within(t, tap.Closed, "the stream is closed")
		if !strings.Contains(log.String(), "panic=secret") {
			t.Error(log.String())
		}
	})
	t.Run("in a drain", func(t *testing.T) {
		t.Parallel()
		f := serveFeeds(t)
		l := f.listen(t, watch)
		tap := within(t, f.Opened, "the stream is opened")
		f.handler.Drain(t.Context(), time.Minute)
		l.ended()
		within(t, tap.Closed, "the stream is closed")
		if got := f.listen(t, watch); got.response.StatusCode != http.StatusServiceUnavailable {
			t.Error(got.response.Status)
		}
		f.listen(t, `{"query":"{me}"}`).events(nextEvent(`{"data":{"me":""}}`), complete)
	})
}

func TestAReaderOfEventsWhoDoesNotRead(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]struct {
		writeTimeout time.Duration
		drain        bool
	}{
		"is gone after the time of a write": {time.Second, false},
		"holds up no drain":                 {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serveFeeds(t, func(c *graph.Config) { c.Sockets.WriteTimeout = options.writeTimeout })
			f.server.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				var dialer net.Dialer
				c, err := dialer.DialContext(ctx, network, address)
				if err == nil {
					err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
				}
				return c, err
			}
			f.listen(t, watch)
			tap := within(t, f.Opened, "the stream is opened")
			tap.Flood(`"` + strings.Repeat("x", 64<<10) + `"`)
			if options.drain {
				until(t, "it is being told", func() bool { return tap.Taken() > 1 })
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				f.handler.Drain(ctx, 0)
			}
			within(t, tap.Closed, "the stream is closed")
		})
	}
}

func TestStreamsOfEventsCountAsAPersonsConnections(t *testing.T) {
	t.Parallel()
	f := serveFeeds(t, func(c *graph.Config) { c.Sockets.MaxPerPerson = 2 })
	first := f.listen(t, watch)
	f.listen(t, watch)
	third := f.listen(t, watch)
	body, _ := io.ReadAll(third.lines)
	if third.response.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), `"code":"TOO_MANY_SUBSCRIPTIONS"`) {
		t.Errorf("%s %s", third.response.Status, body)
	}
	first.close()
	until(t, "one has left", func() bool { return f.handler.SocketStats().Streams == 1 })
	if l := f.listen(t, watch); l.response.StatusCode != http.StatusOK {
		t.Error(l.response.Status)
	}
}

func TestOpeningAStreamOfEventsIsBounded(t *testing.T) {
	t.Parallel()
	f := serveFeeds(t, func(c *graph.Config) { c.RequestTimeout = 30 * time.Millisecond })
	l := f.listen(t, `{"query":"subscription{slowStream}"}`)
	if got := l.event(); !strings.Contains(got, `"code":"UNAVAILABLE"`) {
		t.Error(got)
	}
	l.events(complete)
}
