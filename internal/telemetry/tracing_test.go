package telemetry_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tidemark/internal/telemetry"
)

// receiver takes traces by OTLP over HTTP.
type receiver struct {
	mu    sync.Mutex
	spans map[string]*otlp.Span // by name
	count int
	about string
	path  string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(req.Body)
	}
	raw, _ := io.ReadAll(body)
	var traces collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &traces); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path = req.URL.Path
	for _, resource := range traces.GetResourceSpans() {
		r.about = resource.GetResource().String()
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans[span.GetName()] = span
				r.count++
			}
		}
	}
}

func newReceiver(t *testing.T) (*receiver, *telemetry.Telemetry) {
	t.Helper()
	r := &receiver{spans: make(map[string]*otlp.Span)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	return r, newTelemetry(t, telemetry.Config{Version: "v1.2.3", Tracing: true})
}

func TestTracesArrive(t *testing.T) {
	receiver, tel := newReceiver(t)

	redis := miniredis.RunT(t)
	rdb := goredis.NewClient(&goredis.Options{Addr: redis.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	if err := tel.TraceRedis(rdb); err != nil {
		t.Fatal(err)
	}
	postgres := tel.PostgresTracer()
	work := func(ctx context.Context) {
		if err := rdb.Set(ctx, "a secret", "a secret", 0).Err(); err != nil {
			t.Error(err)
		}
		ctx = postgres.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{SQL: "SELECT $1", Args: []any{"a secret"}})
		postgres.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{})
	}
	work(t.Context()) // in the background: no part of any trace
	w := post(t, newServer(tel, work, nil), `query Badge { name fails(code: \"NOT_FOUND\") }`,
		map[string]string{"Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	if receiver.path != "/v1/traces" || !strings.Contains(receiver.about, "tidemark") || !strings.Contains(receiver.about, "v1.2.3") {
		t.Errorf("got %s at %s", receiver.about, receiver.path)
	}
	within := map[string]string{
		"POST": "", "query": "POST", "Query.name": "query", "Query.fails": "query", "set": "Query.name", "SELECT": "Query.name",
	}
	for name, parent := range within {
		span := receiver.spans[name]
		switch {
		case span == nil:
			t.Fatalf("no span %q", name)
		case parent != "" && !slices.Equal(span.GetParentSpanId(), receiver.spans[parent].GetSpanId()):
			t.Errorf("%q is not within %q", name, parent)
		case hex.EncodeToString(span.GetTraceId()) != "0af7651916cd43dd8448eb211c80319c":
			t.Errorf("%q does not continue the caller's trace", name)
		case strings.Contains(span.String(), "a secret"):
			t.Errorf("%q tells a value: %s", name, span)
		}
	}
	if receiver.count != len(within) {
		t.Errorf("got %d spans, want %d", receiver.count, len(within))
	}
	if got := receiver.spans["query"].GetStatus().GetMessage(); got != "NOT_FOUND" {
		t.Errorf("the operation's status is %q", got)
	}
}

func TestSubscriptionIsTracedToItsFirstResponse(t *testing.T) {
	receiver, tel := newReceiver(t)
	ticks := make(chan struct{}, 1)
	ticks <- struct{}{}
	served := make(chan struct{})
	go func() {
		defer close(served)
		post(t, newServer(tel, nil, ticks), "subscription { name }", map[string]string{"Accept": "text/event-stream"})
	}()
	ticks <- struct{}{} // goes in when the first response has been asked for
	ticks <- struct{}{} // and this when the second has, so that the first is out
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if receiver.spans["subscription"] == nil || receiver.spans["POST"] != nil {
		t.Errorf("got %v", receiver.spans)
	}
	close(ticks)
	<-served
}

func TestWithoutTracing(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	rdb := goredis.NewClient(&goredis.Options{})
	t.Cleanup(func() { _ = rdb.Close() })
	if err := tel.TraceRedis(rdb); err != nil {
		t.Error(err)
	}
	if tracer := tel.PostgresTracer(); tracer != nil {
		t.Errorf("got %T", tracer)
	}
	if n := len(tel.GraphQL()); n != 1 {
		t.Errorf("%d extensions, want only that for metrics", n)
	}
}

func TestTracingRequested(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, false},
		{map[string]string{"OTEL_SERVICE_NAME": "tidemark"}, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/v1/traces"}, true},
	} {
		if got := telemetry.TracingRequested(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: got %v", c.env, got)
		}
	}
}
