package embedded

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"

	"github.com/alicebob/miniredis/v2"

	"tidemark/internal/embedded/engine"
)

// owner runs the engines of a data directory for as long as it holds the directory's lock.
type owner struct {
	dir     string
	lock    *os.File
	log     *slog.Logger
	machine engine.Machine

	watches sync.WaitGroup
	stop    context.CancelFunc
	close   func() error
	standIn *miniredis.Miniredis // nil where Redis is a real one

	mu     sync.Mutex
	record record
	live   *os.File // the record as published; nil before and after
	errs   []error  // of engines that did not end well
}

// own starts the engines for which there is no URL. The lock is given up by Close, or here where that fails.
func (c Config) own(ctx context.Context, lock *os.File) (*Engines, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	o := &owner{
		dir: c.DataDir, lock: lock, log: c.Logger, machine: c.Machine, stop: stop, record: record{OwnerPID: os.Getpid()},
	}
	o.close = sync.OnceValue(o.end)
	engines := &Engines{postgresURL: c.PostgresURL, redisURL: c.RedisURL, owner: o}
	if err := o.start(ctx, running, engines); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return engines, nil
}

// start fills in the URLs that engines lacks. Opening bounds the start, running the life of what was started.
func (o *owner) start(opening, running context.Context, engines *Engines) error {
	last := lastRecord(o.dir)
	if engines.postgresURL == "" {
		at, err := o.startPostgres(opening, running, last.Postgres.port())
		if err != nil {
			return err
		}
		engines.postgresURL = at
	}
	if engines.redisURL == "" {
		at, err := o.startRedis(opening, running, last.Redis.port())
		if err != nil {
			return err
		}
		engines.redisURL = at
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.publishLocked()
}

// publishLocked makes the record known to other processes. The caller holds mu.
func (o *owner) publishLocked() error {
	live, err := o.record.write(o.dir)
	if err != nil {
		return err
	}
	if o.live != nil {
		_ = o.live.Close()
	}
	o.live = live
	return nil
}

// restarted notes an engine's new process id. What is not published yet, or no more, stays so.
func (o *owner) restarted(at *endpoint, pid int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	at.PID = pid
	if o.live == nil {
		return nil
	}
	return o.publishLocked()
}

// end stops the engines and gives up the directory. Nobody is to attach to what is about to go, so that comes first.
func (o *owner) end() error {
	o.mu.Lock()
	if o.live != nil {
		o.errs = append(o.errs, o.live.Close())
		o.live = nil
	}
	o.mu.Unlock()
	o.stop()
	o.watches.Wait()
	if o.standIn != nil {
		o.standIn.Close()
	}
	return errors.Join(append(o.errs, o.lock.Close())...)
}
