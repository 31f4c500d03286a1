package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/extra/redisotel/v9"
	goredis "github.com/redis/go-redis/v9"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"tidemark/graph/feed"
)

const serviceName = "tidemark"

// TracingRequested reports whether the environment that getenv reads names a receiver of traces. That and all else
// about them, such as OTEL_EXPORTER_OTLP_HEADERS and OTEL_TRACES_SAMPLER, is configured as OpenTelemetry has it.
func TracingRequested(getenv func(string) string) bool {
	return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

func newTracerProvider(ctx context.Context, version string) (*sdktrace.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(serviceName), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // the last word, for OTEL_SERVICE_NAME
	)
	if err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("traces are lost", "error", err) }))
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

// PostgresTracer traces, for pgx, the statements of a call that is traced itself, without their arguments. It is nil
// without tracing.
func (t *Telemetry) PostgresTracer() pgx.QueryTracer {
	if t.traces == nil {
		return nil
	}
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(t.traces))
}

// TraceRedis makes rdb trace the commands of a call that is traced itself, without their arguments. It does nothing
// without tracing.
func (t *Telemetry) TraceRedis(rdb goredis.UniversalClient) error {
	if t.traces == nil {
		return nil
	}
	return redisotel.InstrumentTracing(rdb,
		redisotel.WithTracerProvider(partsOnly{t.traces}),
		redisotel.WithDBStatement(false),
		redisotel.WithCallerEnabled(false),
	)
}

// partsOnly gives out tracers that record what is part of a trace and start none: else every beat of background work
// would be a trace of its own.
type partsOnly struct{ trace.TracerProvider }

type partTracer struct{ trace.Tracer }

func (p partsOnly) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return partTracer{p.TracerProvider.Tracer(name, opts...)}
}

func (t partTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return noop.Tracer{}.Start(ctx, name)
	}
	return t.Tracer.Start(ctx, name, opts...)
}

// traceRequests traces requests, but no streams: what goes through a websocket or an event stream is traced by
// operation, and a span as long as the connection says nothing.
func traceRequests(traces trace.TracerProvider, next http.Handler) http.Handler {
	return otelhttp.NewHandler(next, serviceName,
		otelhttp.WithTracerProvider(traces),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithFilter(func(r *http.Request) bool {
			return r.Header.Get("Upgrade") == "" && !strings.Contains(r.Header.Get("Accept"), "text/event-stream")
		}),
	)
}

// operationTracer records a span for each operation, up to its response or until its stream is open, and one for each of
// its root fields.
type operationTracer struct {
	tracer trace.Tracer
}

var (
	_ graphql.OperationInterceptor = operationTracer{}
	_ graphql.RootFieldInterceptor = operationTracer{}
)

func newOperationTracer(traces trace.TracerProvider) operationTracer {
	return operationTracer{tracer: traces.Tracer("tidemark/internal/telemetry")}
}

// ExtensionName is for gqlgen.
func (operationTracer) ExtensionName() string { return "OperationTracer" }

// Validate is for gqlgen.
func (operationTracer) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation records the operation. The span has the operation's type for a name, because its own name is
// for the client to choose; that is an attribute.
func (t operationTracer) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	op := graphql.GetOperationContext(ctx)
	kind := string(op.Operation.Operation)
	ctx, span := t.tracer.Start(ctx, kind, trace.WithAttributes(
		semconv.GraphQLOperationTypeKey.String(kind),
		semconv.GraphQLOperationName(op.Operation.Name),
	))
	respond := next(ctx)
	if feed.Opened(ctx) {
		span.End()
		return respond
	}
	return func(ctx context.Context) *graphql.Response {
		response := respond(ctx)
		if span.IsRecording() {
			if response != nil && len(response.Errors) > 0 {
				span.SetStatus(codes.Error, outcome(response.Errors))
			}
			span.End()
		}
		return response
	}
}

// InterceptRootField records one field of the operation, by its name in the schema.
func (t operationTracer) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	field := graphql.GetRootFieldContext(ctx)
	ctx, span := t.tracer.Start(ctx, field.Object+"."+field.Field.Name)
	defer span.End()
	return next(ctx)
}
