package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
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

// observeWorker adds what the worker does, and how reads are answered, to the metrics.
func observeWorker(metrics prometheus.Registerer, worker *newlyunread.Worker, read *newlyunread.NewlyUnread) {
	worked := func(name, help string, value func(newlyunread.WorkerStats) int64) {
		counter(metrics, "tidemark_newly_unread_"+name, help, nil, func() int64 { return value(worker.Stats()) })
	}
	worked("relayed_total", "Messages of which it was found out to whom they count.", func(s newlyunread.WorkerStats) int64 { return s.Relayed })
	worked("stored_total", "Events that were stored: a message and a person to whom it counts each.", func(s newlyunread.WorkerStats) int64 { return s.Stored })
	worked("parked_total", "Rows set aside because they could not be stored.", func(s newlyunread.WorkerStats) int64 { return s.Parked })
	worked("coalesced_total", "Events not written to Redis because one of the same sender came after them in their batch.", func(s newlyunread.WorkerStats) int64 { return s.Coalesced })
	worked("redundant_total", "Events not written to Redis because the replica showed that they would change nothing.", func(s newlyunread.WorkerStats) int64 { return s.Redundant })
	worked("unsure_total", "Batches written whole because the replica was late, or away.", func(s newlyunread.WorkerStats) int64 { return s.Unsure })
	worked("applied_total", "Writes to Redis, each of one person's changes in a batch.", func(s newlyunread.WorkerStats) int64 { return s.Applied })
	worked("generations_total", "How often all copies of a partition were made old, because one may have lacked something.", func(s newlyunread.WorkerStats) int64 { return s.Generations })
	for kept, value := range map[string]func(newlyunread.Stats) int64{
		"warm": func(s newlyunread.Stats) int64 { return s.Warm },
		"cold": func(s newlyunread.Stats) int64 { return s.Cold },
		"away": func(s newlyunread.Stats) int64 { return s.Away },
	} {
		counter(metrics, "tidemark_newly_unread_reads_total",
			"Reads by the copy in Redis: warm, answered from it; cold, there was none to trust; away, Redis was. The last two were answered from Postgres.",
			prometheus.Labels{"copy": kept}, func() int64 { return value(read.Stats()) })
	}
}

type workCommand struct {
	processConfig `embed:""`
}

// Run does what follows from messages until the context ends, and serves nothing but its health and its metrics.
func (c *workCommand) Run(ctx context.Context) error {
	if err := c.missing(); err != nil {
		return err
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	if err := c.checkSchema(ctx, log); err != nil {
		return err
	}
	listener, err := c.listener(ctx)
	if err != nil {
		return err
	}
	defer listener.Close()
	p := process{log: log}
	defer p.closeParts(context.WithoutCancel(ctx))
	if err := p.openParts(ctx, c.processConfig, delivery.DefaultMaxGap, live.Config{}); err != nil {
		return err
	}
	log.Info("working", "address", listener.Addr().String(), "version", version())
	return p.workAndTell(ctx, listener)
}

// workAndTell works until ctx ends, and meanwhile tells on the listener how it is.
func (p *process) workAndTell(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	p.handleProbes(mux)
	probes := p.webServer(mux, 0)
	working, stop := context.WithCancel(ctx)
	defer stop()
	var told error
	var background sync.WaitGroup
	background.Go(func() {
		defer stop() // a worker that nobody can look at is to be started again
		if err := probes.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			told = fmt.Errorf("serve: %w", err)
		}
	})
	// What the last batch announces is still published.
	living, endLiving := context.WithCancel(context.WithoutCancel(ctx))
	background.Go(func() { p.live(living) })
	p.work(working)
	endLiving()
	_ = probes.Close() // nobody is waited for
	background.Wait()
	return told
}
