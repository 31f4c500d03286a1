package telemetry

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/graph/feed"
	"tidemark/internal/fault"
)

// GraphQL returns the extensions that count and time every operation and, with tracing, trace it. They are to be
// the first that the handler uses.
func (t *Telemetry) GraphQL() []graphql.HandlerExtension {
	extensions := []graphql.HandlerExtension{t.operations}
	if t.traces != nil {
		extensions = append(extensions, newOperationTracer(t.traces))
	}
	return extensions
}

// outcomeOK is the outcome of an operation without errors. Every other outcome is an error code.
const outcomeOK = "OK"

// persistedQueryNotFound is a code of gqlgen that it has no exported name for.
const persistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND"

// operationMetrics counts and times operations. What counts is the response of a query or mutation, and that the stream
// of a subscription is open.
type operationMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

var (
	_ graphql.OperationInterceptor = operationMetrics{}
	_ graphql.ResponseInterceptor  = operationMetrics{}
)

func newOperationMetrics() operationMetrics {
	return operationMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_graphql_operations_total",
			Help: "Operations by the code of their first error, OK where there is none.",
		}, []string{"operation_type", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tidemark_graphql_operation_duration_seconds",
			Help:    "Time from an operation's arrival to its response; of a subscription, until its stream is open.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation_type"}),
	}
}

// ExtensionName is for gqlgen.
func (operationMetrics) ExtensionName() string { return "OperationMetrics" }

// Validate is for gqlgen.
func (operationMetrics) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation observes operations that are executed.
func (m operationMetrics) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	respond := next(ctx)
	observed := feed.Opened(ctx)
	if observed {
		m.observe(ctx, nil)
	}
	return func(ctx context.Context) *graphql.Response {
		response := respond(ctx)
		if !observed && response != nil {
			observed = true
			m.observe(ctx, response.Errors)
		}
		return response
	}
}

// InterceptResponse observes operations that never are: what cannot be parsed, is not valid or too large is
// answered without going through InterceptOperation, and without data.
func (m operationMetrics) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response != nil && response.Data == nil && len(response.Errors) > 0 {
		m.observe(ctx, response.Errors)
	}
	return response
}

func (m operationMetrics) observe(ctx context.Context, errs gqlerror.List) {
	kind := "unknown" // until it is parsed
	if graphql.HasOperationContext(ctx) {
		op := graphql.GetOperationContext(ctx)
		if op.Operation != nil {
			kind = string(op.Operation.Operation)
		}
		if started := op.Stats.OperationStart; !started.IsZero() {
			m.duration.WithLabelValues(kind).Observe(time.Since(started).Seconds())
		}
	}
	m.total.WithLabelValues(kind, outcome(errs)).Inc()
}

// outcome is the code of the first error: one of a closed list, whatever stands there.
func outcome(errs gqlerror.List) string {
	if len(errs) == 0 {
		return outcomeOK
	}
	code, _ := errs[0].Extensions["code"].(string)
	switch fault.Code(code) {
	case fault.BadUserInput, fault.Unauthenticated, fault.Forbidden, fault.NotFound, fault.Conflict, fault.RateLimited,
		fault.Unavailable, fault.Internal, fault.QueryTooLarge, fault.TooManySubscriptions,
		errcode.ParseFailed, errcode.ValidationFailed, persistedQueryNotFound:
		return code
	}
	return string(fault.Internal)
}
