package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// PoolStat is a snapshot of a pool of connections to Postgres, as *pgxpool.Stat is one.
type PoolStat interface {
	AcquiredConns() int32
	IdleConns() int32
	ConstructingConns() int32
	MaxConns() int32
	AcquireCount() int64
	CanceledAcquireCount() int64
	EmptyAcquireCount() int64
	EmptyAcquireWaitTime() time.Duration
}

// ObservePool adds the metrics of one pool, which stat describes whenever metrics are read. name is unique among
// the pools, such as "primary".
func (t *Telemetry) ObservePool(name string, stat func() PoolStat) {
	labels := prometheus.Labels{"pool": name}
	describe := func(metric, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("tidemark_postgres_pool_"+metric, help, variable, labels)
	}
	t.registry.MustRegister(&poolCollector{
		stat:        stat,
		connections: describe("connections", "Connections by what they do.", "state"),
		max:         describe("max_connections", "As many connections as there may be."),
		acquires:    describe("acquires_total", "Connections handed out."),
		canceled:    describe("canceled_acquires_total", "Callers who gave up before they got a connection."),
		waits:       describe("waits_total", "Connections handed out to callers who had to wait for one."),
		waited:      describe("wait_seconds_total", "How long those callers waited."),
	})
}

type poolCollector struct {
	stat                                                func() PoolStat
	connections, max, acquires, canceled, waits, waited *prometheus.Desc
}

func (c *poolCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connections, c.max, c.acquires, c.canceled, c.waits, c.waited} {
		descs <- d
	}
}

func (c *poolCollector) Collect(metrics chan<- prometheus.Metric) {
	s := c.stat()
	gauge := func(d *prometheus.Desc, n int32, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	counter := func(d *prometheus.Desc, n float64) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n)
	}
	gauge(c.connections, s.AcquiredConns(), "acquired")
	gauge(c.connections, s.IdleConns(), "idle")
	gauge(c.connections, s.ConstructingConns(), "constructing")
	gauge(c.max, s.MaxConns())
	counter(c.acquires, float64(s.AcquireCount()))
	counter(c.canceled, float64(s.CanceledAcquireCount()))
	counter(c.waits, float64(s.EmptyAcquireCount()))
	counter(c.waited, s.EmptyAcquireWaitTime().Seconds())
}
