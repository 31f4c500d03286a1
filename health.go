package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// probeTimeout bounds a look at one part.
const probeTimeout = time.Second

// errNotLive says that what other processes publish does not come, or is not known to.
var errNotLive = errors.New("the broker's link is down")

// healthz says that the process runs. It asks nothing of the parts: a restart would not mend them.
func (*process) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readiness is what /readyz answers: each part, and what follows for the whole. Without Redis the process is degraded and
// still right, live updates only later; without Postgres it can answer nothing.
type readiness struct {
	Status string            `json:"status"`
	Parts  map[string]string `json:"parts"`
}

func (p *process) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	var both sync.WaitGroup
	var postgres, redis error
	both.Go(func() { postgres = p.store.Ping(ctx) })
	both.Go(func() { redis = p.redis.Ping(ctx) })
	both.Wait()

	live := errNotLive
	if p.hub.Linked() {
		live = nil
	}
	answer := readiness{Status: "ready", Parts: map[string]string{
		"postgres": part(postgres), "redis": part(redis), "live": part(live),
	}}
	status := http.StatusOK
	switch {
	case postgres != nil:
		answer.Status, status = "unavailable", http.StatusServiceUnavailable
	case redis != nil, live != nil:
		answer.Status = "degraded"
	}
	writeJSON(w, status, answer)
}

func part(err error) string {
	if err != nil {
		return "away"
	}
	return "ok"
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The client is gone where this fails: there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(v)
}
