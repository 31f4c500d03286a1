package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"tidemark/internal/embedded/engine"
)

const (
	// minPause and maxPause bound the wait before an engine is started again. It doubles with each start, and is back
	// at its minimum for an engine that ran for steadyAfter.
	minPause    = 50 * time.Millisecond
	maxPause    = 5 * time.Second
	steadyAfter = time.Minute
)

// watch keeps an engine running in the background until the context ends, and its process id in the record.
func (o *owner) watch(ctx context.Context, name string, process *engine.Process,
	start func(context.Context) (*engine.Process, error), at *endpoint,
) {
	w := &watch{
		name:    name,
		start:   start,
		started: func(pid int) error { return o.restarted(at, pid) },
		log:     o.log,
		pause:   minPause,
	}
	o.watches.Go(func() {
		if err := w.run(ctx, process); err != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.errs = append(o.errs, fmt.Errorf("stop %s: %w", name, err))
		}
	})
}

// watch is one engine that is started again when it ends unasked.
type watch struct {
	name    string
	start   func(context.Context) (*engine.Process, error)
	started func(pid int) error
	log     *slog.Logger
	pause   time.Duration
}

// run returns when the context has ended and the engine with it.
func (w *watch) run(ctx context.Context, process *engine.Process) error {
	for process != nil {
		since := time.Now()
		select {
		case <-ctx.Done():
			return process.Stop()
		case <-process.Done():
		}
		if time.Since(since) >= steadyAfter {
			w.pause = minPause
		}
		w.log.Warn(w.name+": ended unasked, starting it again", "cause", process.Err(), "pause", w.pause)
		process = w.again(ctx)
	}
	return nil
}

// again starts the engine, however often it takes. It returns nil when the context has ended first.
func (w *watch) again(ctx context.Context) *engine.Process {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.pause):
		}
		w.pause = min(2*w.pause, maxPause)
		process, err := w.start(ctx)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Error(w.name+": cannot be started again", "error", err, "pause", w.pause)
			}
			continue
		}
		if err := w.started(process.PID()); err != nil {
			w.log.Error(w.name+": its new process id cannot be written down", "error", err)
		}
		w.log.Info(w.name+": runs again", "pid", process.PID())
		return process
	}
}
