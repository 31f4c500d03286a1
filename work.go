package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/internal/channel"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/presence"
	"tidemark/internal/readstate"
	"tidemark/internal/redis"
)

// sending wakes the worker of the process that sends, so that what follows from a message is there at once.
type sending struct {
	*live.Hub
	worker *newlyunread.Worker
}

var _ channel.Announcer = sending{}

// MessageSent implements channel.Announcer.
func (s sending) MessageSent(message channel.Message, badge readstate.Badge) {
	s.Hub.MessageSent(message, badge)
	s.worker.Wake()
}

// work does what follows from messages until ctx ends.
func (s *server) work(ctx context.Context) {
	if err := s.worker.Run(ctx); err != nil {
		s.log.Error("the worker has ended", "error", err)
	}
}

// newWorker returns a worker that keeps copies right.
func (s *server) newWorker(copies newlyunread.Projection) (*newlyunread.Worker, error) {
	config := newlyunread.WorkerConfig{
		Queue: s.store, Projection: copies, Recency: s.config.NewlyUnreadRecency, Uncoalesced: !s.config.NewlyUnreadCoalesce,
		Announcer: s.hub, Logger: s.log,
	}
	if s.config.RedisReplicaURL != "" {
		var err error
		if s.replica, err = redis.Open(s.config.RedisReplicaURL); err != nil {
			return nil, fmt.Errorf("--redis-replica-url: %w", err)
		}
		config.Check = redis.NewNewlyUnreadCheck(s.redis, s.replica)
	}
	if s.config.NewlyUnreadWhen == whenOffline {
		kept := redis.NewPresence(s.redis)
		reader := presence.NewReader(kept, s.log)
		s.presence, config.Presence = presence.NewTracker(presence.Config{Store: kept, Logger: s.log}), reader
		observePresence(s.telemetry.Registry(), s.presence, reader)
	}
	return newlyunread.NewWorker(config), nil
}

// observeWorker adds what the worker does, and how reads are answered, to the metrics.
func observeWorker(metrics prometheus.Registerer, worker *newlyunread.Worker, read *newlyunread.NewlyUnread) {
	counter := func(name, help string, value func(newlyunread.WorkerStats) int64) {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tidemark_newly_unread_" + name, Help: help},
			func() float64 { return float64(value(worker.Stats())) }))
	}
	counter("relayed_total", "Messages of which it was found out to whom they count.", func(s newlyunread.WorkerStats) int64 { return s.Relayed })
	counter("stored_total", "Events that were stored: a message and a person to whom it counts each.", func(s newlyunread.WorkerStats) int64 { return s.Stored })
	counter("parked_total", "Rows set aside because they could not be stored.", func(s newlyunread.WorkerStats) int64 { return s.Parked })
	counter("coalesced_total", "Events not written to Redis because one of the same sender came after them in their batch.", func(s newlyunread.WorkerStats) int64 { return s.Coalesced })
	counter("redundant_total", "Events not written to Redis because the replica showed that they would change nothing.", func(s newlyunread.WorkerStats) int64 { return s.Redundant })
	counter("unsure_total", "Batches written whole because the replica was late, or away.", func(s newlyunread.WorkerStats) int64 { return s.Unsure })
	counter("applied_total", "Writes to Redis, each of one person's changes in a batch.", func(s newlyunread.WorkerStats) int64 { return s.Applied })
	counter("generations_total", "How often all copies of a partition were made old, because one may have lacked something.", func(s newlyunread.WorkerStats) int64 { return s.Generations })
	for kept, value := range map[string]func(newlyunread.Stats) int64{
		"warm": func(s newlyunread.Stats) int64 { return s.Warm },
		"cold": func(s newlyunread.Stats) int64 { return s.Cold },
		"away": func(s newlyunread.Stats) int64 { return s.Away },
	} {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "tidemark_newly_unread_reads_total", ConstLabels: prometheus.Labels{"copy": kept},
			Help: "Reads by the copy in Redis: warm, answered from it; cold, there was none to trust; away, Redis was. The last two were answered from Postgres.",
		}, func() float64 { return float64(value(read.Stats())) }))
	}
}

type workCommand struct {
	config `embed:""`
}

// Run does what follows from messages until the context ends, and serves nothing.
func (c *workCommand) Run(ctx context.Context) error {
	if err := c.missing(); err != nil {
		return err
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	server, err := newServer(ctx, c.config, c.trusted(log), log)
	if err != nil {
		return err
	}
	defer server.close(context.WithoutCancel(ctx))
	log.Info("working", "version", version())
	living, endLiving := context.WithCancel(context.WithoutCancel(ctx))
	lived := make(chan struct{})
	go func() {
		defer close(lived)
		server.live(living)
	}()
	server.work(ctx)
	endLiving()
	<-lived
	return nil
}
