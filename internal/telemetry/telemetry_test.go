package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/goleak"

	"tidemark/internal/fault"
	"tidemark/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTelemetry(t *testing.T, cfg telemetry.Config) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := tel.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return tel
}

// scrape returns the metrics as Prometheus gets them.
func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("got %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, metrics string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "tidemark_") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// newServer serves a small schema behind what tel gives for it. Query.name is resolved by name, where there is one,
// Query.fails fails, and Subscription.name answers as often as is received from ticks.
func newServer(tel *telemetry.Telemetry, name func(context.Context), ticks <-chan struct{}) http.Handler {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: `
		type Query { name: String! fails(code: String!): String }
		type Mutation { name: String! }
		type Subscription { name: String! }
	`})
	resolve := func(ctx context.Context, op *graphql.OperationContext) {
		for _, field := range graphql.CollectFields(op, op.Operation.SelectionSet, nil) {
			ctx := graphql.WithRootFieldContext(ctx, &graphql.RootFieldContext{Object: field.ObjectDefinition.Name, Field: field})
			op.RootResolverMiddleware(ctx, func(ctx context.Context) graphql.Marshaler {
				if code, fails := field.ArgumentMap(op.Variables)["code"]; fails {
					graphql.AddError(ctx, &gqlerror.Error{Message: "it fails", Extensions: map[string]any{"code": code}})
				} else if name != nil {
					name(ctx)
				}
				return graphql.Null
			})
		}
	}
	server := handler.New(&graphql.ExecutableSchemaMock{
		SchemaFunc:     func() *ast.Schema { return schema },
		ComplexityFunc: func(context.Context, string, string, int, map[string]any) (int, bool) { return 1, true },
		ExecFunc: func(ctx context.Context) graphql.ResponseHandler {
			op := graphql.GetOperationContext(ctx)
			if op.Operation.Operation == ast.Subscription {
				return func(context.Context) *graphql.Response {
					if _, ok := <-ticks; !ok {
						return nil
					}
					return &graphql.Response{Data: []byte(`{"name":"Ada"}`)}
				}
			}
			done := false
			return func(ctx context.Context) *graphql.Response {
				if done {
					return nil
				}
				done = true
				resolve(ctx, op)
				return &graphql.Response{Data: []byte(`{}`)}
			}
		},
	})
	for _, e := range tel.GraphQL() {
		server.Use(e)
	}
	server.Use(extension.FixedComplexityLimit(5))
	server.AddTransport(transport.SSE{})
	server.AddTransport(transport.POST{})
	return tel.Handler(server)
}

func post(t *testing.T, h http.Handler, query string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	body := strings.NewReader(`{"query": "` + query + `"}`)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", body)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestOperationsAreCounted(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{Version: "v1.2.3"})
	server := newServer(tel, nil, nil)
	post(t, server, "query Made_Up_1 { name }", nil)
	post(t, server, "query Made_Up_2 { name }", nil)
	post(t, server, "mutation { name }", nil)
	post(t, server, `{ fails(code: \"NOT_FOUND\") }`, nil)
	post(t, server, `{ a: fails(code: \"CONFLICT\") b: fails(code: \"FORBIDDEN\") }`, nil)
	post(t, server, `{ fails(code: \"a client's words\") }`, nil)
	post(t, server, "{ a: name b: name c: name d: name e: name f: name }", nil)
	post(t, server, "{ nonsense }", nil)
	post(t, server, "{", nil)

	metrics := scrape(t, tel)
	wantLines(t, metrics,
		`tidemark_build_info{version="v1.2.3"} 1`,
		`tidemark_http_requests_total{code="200",method="post"} 7`,
		`tidemark_http_requests_total{code="422",method="post"} 2`,
		`tidemark_graphql_operations_total{operation_type="query",outcome="OK"} 2`,
		`tidemark_graphql_operations_total{operation_type="mutation",outcome="OK"} 1`,
		`tidemark_graphql_operations_total{operation_type="query",outcome="NOT_FOUND"} 1`,
		`tidemark_graphql_operations_total{operation_type="query",outcome="CONFLICT"} 1`,
		`tidemark_graphql_operations_total{operation_type="query",outcome="INTERNAL"} 2`,
		`tidemark_graphql_operations_total{operation_type="unknown",outcome="GRAPHQL_VALIDATION_FAILED"} 1`,
		`tidemark_graphql_operations_total{operation_type="unknown",outcome="GRAPHQL_PARSE_FAILED"} 1`,
		`tidemark_graphql_operation_duration_seconds_count{operation_type="query"} 6`,
	)
	for _, chosen := range []string{"Made_Up", "words", "nonsense"} {
		if strings.Contains(metrics, chosen) {
			t.Errorf("a client got %q into the metrics", chosen)
		}
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if !strings.Contains(metrics, "\n"+name+" ") {
			t.Errorf("no metric %s", name)
		}
	}
}

func TestSubscriptionIsCountedOnce(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	ticks := make(chan struct{}, 3)
	for range cap(ticks) {
		ticks <- struct{}{}
	}
	close(ticks)
	w := post(t, newServer(tel, nil, ticks), "subscription { name }", map[string]string{"Accept": "text/event-stream"})
	if got := strings.Count(w.Body.String(), "Ada"); got != 3 {
		t.Fatalf("got %d events: %s", got, w.Body)
	}
	wantLines(t, scrape(t, tel),
		`tidemark_graphql_operations_total{operation_type="subscription",outcome="OK"} 1`,
		`tidemark_graphql_operation_duration_seconds_count{operation_type="subscription"} 1`,
	)
}

// TestEveryFaultIsAnOutcome keeps the closed list in step with fault's.
func TestEveryFaultIsAnOutcome(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	server := newServer(tel, nil, nil)
	codes := []fault.Code{
		fault.BadUserInput, fault.Unauthenticated, fault.Forbidden, fault.NotFound, fault.Conflict, fault.RateLimited,
		fault.Unavailable, fault.Internal, fault.QueryTooLarge, fault.TooManySubscriptions,
	}
	for _, code := range codes {
		post(t, server, `{ fails(code: \"`+string(code)+`\") }`, nil)
	}
	metrics := scrape(t, tel)
	for _, code := range codes {
		wantLines(t, metrics, `tidemark_graphql_operations_total{operation_type="query",outcome="`+string(code)+`"} 1`)
	}
}

// TestHandlerLeavesStreamsAlone: whatever wraps a response must still let it be flushed and taken over.
func TestHandlerLeavesStreamsAlone(t *testing.T) {
	for name, cfg := range map[string]telemetry.Config{"plain": {}, "traced": {Tracing: true}} {
		t.Run(name, func(t *testing.T) {
			tel := newTelemetry(t, cfg)
			server := httptest.NewServer(tel.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rc := http.NewResponseController(w)
				if err := errors.Join(rc.SetWriteDeadline(time.Now().Add(time.Minute)), rc.Flush()); err != nil {
					t.Error(err)
				}
				conn, _, err := rc.Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = conn.Write([]byte("taken over"))
				_ = conn.Close()
			})))
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("got %s, %v", res.Status, err)
			}
		})
	}
}

type poolStat struct{ telemetry.PoolStat }

var _ telemetry.PoolStat = (*pgxpool.Stat)(nil)

func (poolStat) AcquiredConns() int32                { return 3 }
func (poolStat) IdleConns() int32                    { return 2 }
func (poolStat) ConstructingConns() int32            { return 1 }
func (poolStat) MaxConns() int32                     { return 20 }
func (poolStat) AcquireCount() int64                 { return 1000 }
func (poolStat) CanceledAcquireCount() int64         { return 4 }
func (poolStat) EmptyAcquireCount() int64            { return 50 }
func (poolStat) EmptyAcquireWaitTime() time.Duration { return 1500 * time.Millisecond }

func TestPools(t *testing.T) {
	tel := newTelemetry(t, telemetry.Config{})
	for _, name := range []string{"primary", "replica"} {
		tel.ObservePool(name, func() telemetry.PoolStat { return poolStat{} })
	}
	wantLines(t, scrape(t, tel),
		`tidemark_postgres_pool_connections{pool="primary",state="acquired"} 3`,
		`tidemark_postgres_pool_connections{pool="primary",state="idle"} 2`,
		`tidemark_postgres_pool_connections{pool="replica",state="constructing"} 1`,
		`tidemark_postgres_pool_max_connections{pool="primary"} 20`,
		`tidemark_postgres_pool_acquires_total{pool="primary"} 1000`,
		`tidemark_postgres_pool_canceled_acquires_total{pool="primary"} 4`,
		`tidemark_postgres_pool_waits_total{pool="primary"} 50`,
		`tidemark_postgres_pool_wait_seconds_total{pool="primary"} 1.5`,
	)
}

func TestLogger(t *testing.T) {
	for format, want := range map[string]string{"text": `level=WARN msg=tide user=7`, "json": `"level":"WARN","msg":"tide","user":7}`} {
		var w bytes.Buffer
		logger, err := telemetry.Logger(&w, format, slog.LevelWarn)
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("ebb")
		logger.Warn("tide", "user", 7)
		if got := strings.TrimSpace(w.String()); !strings.HasSuffix(got, want) || strings.Contains(got, "ebb") {
			t.Errorf("%s: got %s, want %s", format, got, want)
		}
	}
	if _, err := telemetry.Logger(io.Discard, "xml", 0); err == nil {
		t.Error("xml is a format")
	}
}
