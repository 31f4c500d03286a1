package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"tidemark/graph"
	"tidemark/graph/socket"
	"tidemark/internal/live"
)

// observeHub adds what goes on live to the metrics.
func observeHub(metrics prometheus.Registerer, hub *live.Hub) {
	now := func(name, help string, value func(live.Stats) int) {
		gauge(metrics, "tidemark_live_"+name, help, func() int { return value(hub.Stats()) })
	}
	since := func(name, help string, value func(live.Stats) int64) {
		counter(metrics, "tidemark_live_"+name, help, nil, func() int64 { return value(hub.Stats()) })
	}
	gauge(metrics, "tidemark_live_link_up", "1 where the broker's probes come back, else 0.", func() int {
		if hub.Linked() {
			return 1
		}
		return 0
	})
	now("people", "People whose badges are held because they look at them.", func(s live.Stats) int { return s.People })
	now("badge_subscribers", "Open badgeChanged subscriptions.", func(s live.Stats) int { return s.BadgeStreams })
	now("event_subscribers", "Open channelEvents subscriptions.", func(s live.Stats) int { return s.EventStreams })
	now("watched_messages", "Messages whose readers somebody watches.", func(s live.Stats) int { return s.Watched })
	since("publishes_total", "Publications that the broker took.", func(s live.Stats) int64 { return s.Published })
	since("publishes_lost_total", "Publications that the broker did not take, or that found a queue full.", func(s live.Stats) int64 { return s.Unpublished })
	since("receives_total", "Publications that came, this process's own among them.", func(s live.Stats) int64 { return s.Received })
	since("deliveries_total", "Changes and events that subscribers took.", func(s live.Stats) int64 { return s.Delivered })
	since("conflations_total", "Changes of a badge that melted into one that still waited for its reader.", func(s live.Stats) int64 { return s.Conflated })
	since("gaps_total", "Gaps among a channel's events that did not close, and were read from Postgres.", func(s live.Stats) int64 { return s.Gaps })
	since("reconciled_total", "Badges that comparing with Postgres found wrong, and put right.", func(s live.Stats) int64 { return s.Reconciled })
	since("resumes_total", "Times that the broker's link came up.", func(s live.Stats) int64 { return s.Resumed })
}

// observeSockets adds who is connected to the metrics.
func observeSockets(metrics prometheus.Registerer, api *graph.Handler) {
	gauge(metrics, "tidemark_live_websockets", "Websockets that are open.", func() int64 { return api.SocketStats().Sockets })
	gauge(metrics, "tidemark_live_sse_streams", "Streams of server-sent events that are open.", func() int64 { return api.SocketStats().Streams })
	ended := func(name, help string, value func(socket.Stats) uint64) {
		counter(metrics, "tidemark_live_"+name, help, nil, func() uint64 { return value(api.SocketStats()) })
	}
	ended("connections_refused_total", "Connections turned away: without a good token, one too many of a person, or while the server ends.",
		func(s socket.Stats) uint64 { return s.Refused })
	ended("slow_readers_total", "Websockets and event streams ended because their client did not read.", func(s socket.Stats) uint64 { return s.Slow })
	ended("silent_readers_total", "Websockets ended because their client did not answer a ping.", func(s socket.Stats) uint64 { return s.Silent })
}
