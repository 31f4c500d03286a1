package graph_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tidemark/graph"
	"tidemark/graph/socket/sockettest"
	"tidemark/internal/auth"
)

const (
	secret    = "a secret that is long enough for HS256"
	eventType = "text/event-stream"
	patience  = 20 * time.Second

	watch     = `{"query":"subscription{values}"}`
	keepAlive = ":\n"
	complete  = "event: complete\ndata: \n"
)

// feedServer serves an API whose streams say what a test has them say, with deadlines for requests that are short.
type feedServer struct {
	*sockettest.API
	handler *graph.Handler
	server  *httptest.Server
}

func serveFeeds(t *testing.T, options ...func(*graph.Config)) *feedServer {
	t.Helper()
	verifier, err := auth.NewVerifier(auth.Config{Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	cfg := graph.Config{Resolver: domain{}.resolver(), Logger: slog.New(slog.DiscardHandler), Authenticate: verifier.Authenticate}
	for _, option := range options {
		option(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	f := &feedServer{API: sockettest.New()}
	f.handler = graph.NewHandlerOf(cfg, f.API)
	f.server = httptest.NewUnstartedServer(verifier.Middleware(f.handler))
	f.server.Config.ReadTimeout, f.server.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	f.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10) // so that one can tell who does not read
		return ctx
	}
	f.server.Start()
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		f.handler.Drain(over, 0)
		f.server.Close()
		if s := f.handler.SocketStats(); s.Streams != 0 {
			t.Errorf("after the drain there is %+v", s)
		}
	})
	return f
}

func tokenUntil(t *testing.T, expiry time.Time) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "7", "exp": expiry.Unix()}).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// listener is who reads an answer event by event.
type listener struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
	close    func()
}

// listen posts an operation as Ann.
func (f *feedServer) listen(t *testing.T, body string, options ...func(*http.Request)) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Accept": {eventType}, "Content-Type": {"application/json"},
		"Authorization": {"Bearer " + tokenUntil(t, time.Now().Add(time.Hour))},
	}
	for _, option := range options {
		option(r)
	}
	response, err := f.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &listener{t, response, bufio.NewReader(response.Body), cancel}
}

// events waits for these events, and fails if others come. Shows of life are left out.
func (l *listener) events(want ...string) {
	l.t.Helper()
	for _, w := range want {
		got := keepAlive
		for got == keepAlive {
			got = l.event()
		}
		if got != w {
			l.t.Fatalf("got  %q\nwant %q", got, w)
		}
	}
}

func (l *listener) event() string {
	l.t.Helper()
	var event strings.Builder
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			l.t.Fatalf("%v after %q", err, event.String())
		}
		if line == "\n" {
			return event.String()
		}
		event.WriteString(line)
	}
}

// ended fails unless nothing else comes.
func (l *listener) ended() {
	l.t.Helper()
	rest, err := io.ReadAll(l.lines)
	if got := strings.ReplaceAll(string(rest), keepAlive+"\n", ""); err != nil || got != "" {
		l.t.Fatalf("got %v after %q", err, rest)
	}
}

func nextEvent(payload string) string { return "event: next\ndata: " + payload + "\n" }

func within[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(patience):
		t.Fatalf("waited in vain until %s", what)
		panic("unreachable")
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
