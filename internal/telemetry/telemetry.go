// Package telemetry is what operators see of Tidemark: metrics, traces and the form of the log.
//
// Metrics are kept in a registry of their own and are always on. No label takes a value that a client can choose, so
// the number of series is bounded. Traces are recorded only where an exporter is configured; without one, none of
// what this package puts into the path of a call mentions OpenTelemetry.
package telemetry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Config says what is recorded beside the metrics.
type Config struct {
	// Version is the program's, as traces and tidemark_build_info show it.
	Version string
	// Tracing sends traces to where OpenTelemetry's own environment variables say. See TracingRequested.
	Tracing bool
}

// Telemetry holds the metrics and, if there are any, the traces of one process.
type Telemetry struct {
	registry   *prometheus.Registry
	requests   *prometheus.CounterVec
	operations operationMetrics
	traces     *sdktrace.TracerProvider // nil without tracing
}

// New returns what cfg asks for. With tracing it starts goroutines that end with Shutdown.
func New(ctx context.Context, cfg Config) (*Telemetry, error) {
	t := &Telemetry{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidemark_http_requests_total",
			Help: "HTTP requests that were answered; a websocket is one, with code 101.",
		}, []string{"code", "method"}),
		operations: newOperationMetrics(),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "tidemark_build_info",
		Help:        "Always 1; the label says which version runs.",
		ConstLabels: prometheus.Labels{"version": cfg.Version},
	})
	build.Set(1)
	t.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		build, t.requests, t.operations.total, t.operations.duration,
	)
	if cfg.Tracing {
		var err error
		if t.traces, err = newTracerProvider(ctx, cfg.Version); err != nil {
			return nil, fmt.Errorf("start tracing: %w", err)
		}
	}
	return t, nil
}

// Registry is where other packages register metrics of their own.
func (t *Telemetry) Registry() prometheus.Registerer { return t.registry }

// Metrics serves all metrics in the formats of Prometheus.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// Handler counts, and with tracing traces, the requests that next serves.
func (t *Telemetry) Handler(next http.Handler) http.Handler {
	if t.traces != nil {
		next = traceRequests(t.traces, next)
	}
	return promhttp.InstrumentHandlerCounter(t.requests, next)
}

// Shutdown sends the traces that wait to be sent, for as long as ctx lets it, and ends tracing. Metrics stay.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if t.traces == nil {
		return nil
	}
	if err := t.traces.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop tracing: %w", err)
	}
	return nil
}
