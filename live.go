package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidemark/graph"
	"tidemark/internal/live"
)

// observeHub adds what goes on live to the metrics.
func observeHub(metrics prometheus.Registerer, hub *live.Hub) {
	gauge, counter := liveMetrics(metrics)
	of := func(number func(live.Stats) int64) func() float64 {
		return func() float64 { return float64(number(hub.Stats())) }
	}
	gauge("link_up", "1 where the broker's probes come back, else 0.", func() float64 {
		if hub.Linked() {
			return 1
		}
		return 0
	})
	gauge("people", "People whose badges are held because they look at them.", of(func(s live.Stats) int64 { return int64(s.People) }))
	gauge("badge_subscribers", "Open badgeChanged subscriptions.", of(func(s live.Stats) int64 { return int64(s.BadgeStreams) }))
	gauge("event_subscribers", "Open channelEvents subscriptions.", of(func(s live.Stats) int64 { return int64(s.EventStreams) }))
	gauge("watched_messages", "Messages whose readers somebody watches.", of(func(s live.Stats) int64 { return int64(s.Watched) }))
	counter("publishes_total", "Publications that the broker took.", of(func(s live.Stats) int64 { return s.Published }))
	counter("publishes_lost_total", "Publications that the broker did not take, or that found a queue full.", of(func(s live.Stats) int64 { return s.Unpublished }))
	counter("receives_total", "Publications that came, this process's own among them.", of(func(s live.Stats) int64 { return s.Received }))
	counter("deliveries_total", "Changes and events that subscribers took.", of(func(s live.Stats) int64 { return s.Delivered }))
	counter("conflations_total", "Changes of a badge that melted into one that still waited for its reader.", of(func(s live.Stats) int64 { return s.Conflated }))
	counter("gaps_total", "Gaps among a channel's events that did not close, and were read from Postgres.", of(func(s live.Stats) int64 { return s.Gaps }))
	counter("reconciled_total", "Badges that comparing with Postgres found wrong, and put right.", of(func(s live.Stats) int64 { return s.Reconciled }))
	counter("resumes_total", "Times that the broker's link came up.", of(func(s live.Stats) int64 { return s.Resumed }))
}

// observeSockets adds who is connected to the metrics.
func observeSockets(metrics prometheus.Registerer, api *graph.Handler) {
	gauge, counter := liveMetrics(metrics)
	gauge("websockets", "Websockets that are open.", func() float64 { return float64(api.SocketStats().Sockets) })
	gauge("sse_streams", "Streams of server-sent events that are open.", func() float64 { return float64(api.SocketStats().Streams) })
	counter("connections_refused_total", "Connections turned away: without a good token, one too many of a person, or while the server ends.",
		func() float64 { return float64(api.SocketStats().Refused) })
	counter("slow_readers_total", "Websockets and event streams ended because their client did not read.", func() float64 { return float64(api.SocketStats().Slow) })
	counter("silent_readers_total", "Websockets ended because their client did not answer a ping.", func() float64 { return float64(api.SocketStats().Silent) })
}

// liveMetrics returns what registers a gauge, and a counter, of what goes on live.
func liveMetrics(metrics prometheus.Registerer) (gauge, counter func(name, help string, value func() float64)) {
	gauge = func(name, help string, value func() float64) {
		metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tidemark_live_" + name, Help: help}, value))
	}
	counter = func(name, help string, value func() float64) {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tidemark_live_" + name, Help: help}, value))
	}
	return gauge, counter
}
