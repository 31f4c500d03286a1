package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/internal/channel"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/readstate"
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

// observeWorker adds what the worker does to the metrics.
func observeWorker(metrics prometheus.Registerer, worker *newlyunread.Worker) {
	counter := func(name, help string, value func(newlyunread.WorkerStats) int64) {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tidemark_newly_unread_" + name, Help: help},
			func() float64 { return float64(value(worker.Stats())) }))
	}
	counter("relayed_total", "Messages of which it was found out to whom they count.", func(s newlyunread.WorkerStats) int64 { return s.Relayed })
	counter("stored_total", "Events that were stored: a message and a person to whom it counts each.", func(s newlyunread.WorkerStats) int64 { return s.Stored })
	counter("parked_total", "Rows set aside because they could not be stored.", func(s newlyunread.WorkerStats) int64 { return s.Parked })
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
