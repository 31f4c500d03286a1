package socket_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"tidemark/graph/socket"
)

// It does not run beside other tests, whose goroutines it would count.
func TestAnIdleConnectionIsOneGoroutine(t *testing.T) { //nolint:paralleltest // see above
	e := open(t, func(c *socket.Config) { c.MaxPerPerson = 1000 })
	before := runtime.NumGoroutine()
	const connections = 1000
	clients := idle(t, e, connections)
	until(t, "only readers are left", func() bool { return runtime.NumGoroutine() == before+connections })
	if s := e.transport.Stats(); s.Sockets != connections || s.Subscriptions != connections || s.Calls != 0 {
		t.Errorf("%+v", s)
	}
	for _, c := range clients {
		_ = c.Close()
	}
	until(t, "all are gone", func() bool { return e.transport.Stats().Sockets == 0 && runtime.NumGoroutine() <= before })
}

// BenchmarkIdle measures what a connection holds that is signed in, is pinged, and has one subscription open; the
// client's end of it and the stream are counted in.
func BenchmarkIdle(b *testing.B) {
	const connections = 5000
	for b.Loop() {
		e := open(b, func(c *socket.Config) { c.MaxPerPerson, c.PongWithin = connections+10, 25*time.Second })
		idle(b, e, 10)
		before, goroutines := held(), runtime.NumGoroutine()
		clients := idle(b, e, connections)
		until(b, "only readers are left", func() bool { return runtime.NumGoroutine() <= goroutines+connections })
		b.ReportMetric(float64(held()-before)/connections, "B/conn")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/connections, "goroutines/conn")
		for _, c := range clients {
			_ = c.Close()
		}
	}
}

func held() uint64 {
	var stats runtime.MemStats
	for range 5 { // stacks shrink by half in each
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}

// idle returns connections as Ann, each with a subscription that has said something. They hold as little as can be.
func idle(tb testing.TB, e *endpoint, n int) []net.Conn {
	tb.Helper()
	bearer := strings.ReplaceAll(initAsAnn, "ANN", token(tb, "7", time.Now().Add(time.Hour)))
	const query = "subscription Badges { values }"
	clients := make([]net.Conn, n)
	for i := range clients {
		var err error
		if clients[i], err = net.Dial("tcp", e.server.Listener.Addr().String()); err != nil { //nolint:noctx // it is local
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = clients[i].Close() })
		raw := rawClient{tb, clients[i], bufio.NewReaderSize(clients[i], 512)}
		raw.upgrade()
		raw.send(bearer)
		raw.want(ack)
		raw.send(subscribe("4f1c0a52-8a4e-4f6e-9b53-0d6a7a7f6c11", query))
		e.tap(tb).Say("1")
		raw.want(next("4f1c0a52-8a4e-4f6e-9b53-0d6a7a7f6c11", `{"values":1}`))
	}
	return clients
}

// rawClient speaks websocket itself: short messages, each in one frame.
type rawClient struct {
	tb   testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (c rawClient) upgrade() {
	c.tb.Helper()
	if _, err := fmt.Fprintf(c.conn, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n", protocol); err != nil {
		c.tb.Fatal(err)
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.tb.Fatal(err)
		}
		if line == "\r\n" {
			return
		}
	}
}

func (c rawClient) send(message string) {
	c.tb.Helper()
	frame := append([]byte{0x81, 0x80 | 126, byte(len(message) >> 8), byte(len(message)), 0, 0, 0, 0}, message...)
	if _, err := c.conn.Write(frame); err != nil {
		c.tb.Fatal(err)
	}
}

func (c rawClient) want(message string) {
	c.tb.Helper()
	var head, body [256]byte
	if _, err := c.in.Read(head[:2]); err != nil {
		c.tb.Fatal(err)
	}
	n := int(head[1])
	for at := 0; at < n; {
		read, err := c.in.Read(body[at:n])
		if err != nil {
			c.tb.Fatal(err)
		}
		at += read
	}
	if got := string(body[:n]); got != message {
		c.tb.Fatalf("got %s, want %s", got, message)
	}
}

// What counts and traces requests lets a connection be taken over.
func TestSocketsBehindMiddleware(t *testing.T) {
	t.Parallel()
	e := open(t)
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"code", "method"})
	for _, wrapped := range []http.Handler{
		promhttp.InstrumentHandlerCounter(requests, e.server.Config.Handler),
		otelhttp.NewHandler(e.server.Config.Handler, "x"),
	} {
		for _, start := range []func(*httptest.Server){(*httptest.Server).Start, (*httptest.Server).StartTLS} {
			behind := &endpoint{API: e.API, transport: e.transport, server: httptest.NewUnstartedServer(wrapped)}
			start(behind.server)
			dialer := websocket.Dialer{Subprotocols: []string{protocol}, TLSClientConfig: behind.server.Client().Transport.(*http.Transport).TLSClientConfig}
			c := behind.dialWith(t, nil, dialer)
			c.send(initAsAnn, subscribe("1", "{me}"))
			c.want(ack, next("1", `{"me":"Person 7"}`), complete("1"))
			if err := c.ws.Close(); err != nil {
				t.Fatal(err)
			}
			behind.server.Close()
		}
	}
}
