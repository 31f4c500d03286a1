package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/internal/presence"
)

// whenOffline is the rule by which messages count only for those who are not connected when they come. Presence is kept
// and asked for it alone.
const whenOffline = "offline"

// trackPresence notes who is connected to this process until ctx ends.
func (s *server) trackPresence(ctx context.Context) {
	if err := s.tracker.Run(ctx); err != nil {
		s.log.Error("presence has ended", "error", err)
	}
}

// observeTracker adds who is connected to the metrics.
func observeTracker(metrics prometheus.Registerer, tracker *presence.Tracker) {
	gauge(metrics, "tidemark_presence_people", "People who have a connection to this process open.", tracker.People)
}

// observePresence adds how often it was not known who is connected to the metrics.
func observePresence(metrics prometheus.Registerer, reader *presence.Reader) {
	counter(metrics, "tidemark_presence_unknown_total",
		"Batches of messages that counted for everybody, because it could not be found out who is connected.", nil, reader.Unknown)
}
