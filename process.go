package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"tidemark/internal/delivery"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
	"tidemark/internal/presence"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
	"tidemark/internal/redis"
	"tidemark/internal/telemetry"
)

// process is what each process of Tidemark holds open, be it one that serves or one that only works.
type process struct {
	log         *slog.Logger
	store       *postgres.Store
	redis       *redis.Client
	replica     *redis.Client // nil where there is none
	telemetry   *telemetry.Telemetry
	copies      *redis.NewlyUnread
	newlyUnread *newlyunread.NewlyUnread
	hub         *live.Hub
	worker      *newlyunread.Worker
	presence    *redis.Presence // nil where it makes no difference who is connected
}

// openParts opens what config names. It does not fail because Postgres or Redis is away; closeParts closes all of it, also
// after an error.
func (p *process) openParts(ctx context.Context, config processConfig, gap int, shown live.Config) (err error) {
	if p.telemetry, err = telemetry.New(ctx, telemetry.Config{Version: version(), Tracing: telemetry.TracingRequested(os.Getenv)}); err != nil {
		return err
	}
	if p.store, err = postgres.Open(ctx, postgres.Config{
		URL: config.DatabaseURL, MaxConnections: config.MaxConnections, Tracer: p.telemetry.PostgresTracer(),
		StatementTimeout: config.StatementTimeout, LockTimeout: config.LockTimeout,
		NewlyUnreadMaxMembers: config.NewlyUnreadMaxMembers,
	}); err != nil {
		return err
	}
	p.telemetry.ObservePool("primary", func() telemetry.PoolStat { return p.store.Stat() })
	if p.redis, err = redis.Open(config.RedisURL); err != nil {
		return err
	}
	if err := p.redis.Instrument(p.telemetry.TraceRedis); err != nil {
		return err
	}
	p.copies = redis.NewNewlyUnread(p.redis)
	p.newlyUnread = newlyunread.New(newlyunread.Config{Store: p.store, Projection: p.copies, Logger: p.log})
	past := delivery.New(p.store, readstate.New(p.store, nil), gap)
	shown.NewlyUnread, shown.Receipts, shown.Logger = p.newlyUnread, receipt.New(p.store, nil), p.log
	p.hub = live.NewHub(p.store, past, redis.NewBroker(p.redis, redis.BrokerConfig{Logger: p.log}), shown)
	p.newlyUnread.Announcer = p.hub // each needs the other
	if p.worker, err = p.newWorker(config); err != nil {
		return err
	}
	observeHub(p.telemetry.Registry(), p.hub)
	observeWorker(p.telemetry.Registry(), p.worker, p.newlyUnread)
	return nil
}

// newWorker returns a worker that keeps copies right.
func (p *process) newWorker(config processConfig) (*newlyunread.Worker, error) {
	working := newlyunread.WorkerConfig{
		Queue: p.store, Projection: p.copies, Recency: config.NewlyUnreadRecency, Uncoalesced: !config.NewlyUnreadCoalesce,
		Announcer: p.hub, Logger: p.log,
	}
	if config.RedisReplicaURL != "" {
		var err error
		if p.replica, err = redis.Open(config.RedisReplicaURL); err != nil {
			return nil, fmt.Errorf("--redis-replica-url: %w", err)
		}
		working.Check = redis.NewNewlyUnreadCheck(p.redis, p.replica)
	}
	if config.NewlyUnreadWhen == whenOffline {
		p.presence = redis.NewPresence(p.redis)
		reader := presence.NewReader(p.presence, p.log)
		working.Presence = reader
		observePresence(p.telemetry.Registry(), reader)
	}
	return newlyunread.NewWorker(working), nil
}

// handleProbes serves what tells of the process itself.
func (p *process) handleProbes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", p.healthz)
	mux.HandleFunc("GET /readyz", p.readyz)
	mux.Handle("GET /metrics", p.telemetry.Metrics())
}

// webServer bounds what a client may take of a server whose calls take so long at the most.
func (p *process) webServer(handler http.Handler, call time.Duration) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      readTimeout + call + writeGrace,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
}

// live keeps open screens right until ctx ends.
func (p *process) live(ctx context.Context) {
	if err := p.hub.Run(ctx); err != nil {
		p.log.Error("live updates have ended", "error", err)
	}
}

// work does what follows from messages until ctx ends.
func (p *process) work(ctx context.Context) {
	if err := p.worker.Run(ctx); err != nil {
		p.log.Error("the worker has ended", "error", err)
	}
}

// closeParts closes what openParts opened, whether it got to the end or not.
func (p *process) closeParts(ctx context.Context) {
	for _, client := range []*redis.Client{p.redis, p.replica} {
		if client == nil {
			continue
		}
		if err := client.Close(); err != nil {
			p.log.Warn("close Redis", "error", err)
		}
	}
	if p.store != nil {
		p.store.Close()
	}
	if p.telemetry != nil {
		ctx, cancel := context.WithTimeout(ctx, tracesTimeout)
		defer cancel()
		if err := p.telemetry.Shutdown(ctx); err != nil {
			p.log.Warn("send the last traces", "error", err)
		}
	}
}
