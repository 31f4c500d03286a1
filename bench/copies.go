package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
	"tidemark/internal/redis"
)

// recipientMarks is how many marks there are where all copies are trusted: one for each partition of recipients.
const recipientMarks = 64

// copies are those of newly unread in the lab's Redis: how they are read, how they are kept right, and a connection past
// both. Close them.
type copies struct {
	store            *postgres.Store
	reading, keeping *redis.Client
	read, fromStore  *newlyunread.NewlyUnread
	raw              *goredis.Client
}

// openCopies empties Redis.
func (l *lab) openCopies(ctx context.Context) (*copies, error) {
	options, err := goredis.ParseURL(l.redis.URL())
	if err != nil {
		return nil, err
	}
	c := &copies{raw: goredis.NewClient(options)}
	if c.store, err = postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: connections}); err != nil {
		return nil, errors.Join(err, c.raw.Close())
	}
	var first, second error
	c.reading, first = redis.Open(l.redis.URL())
	c.keeping, second = redis.Open(l.redis.URL())
	if err := errors.Join(first, second, c.raw.FlushAll(ctx).Err()); err != nil {
		return nil, err
	}
	silent := slog.New(slog.DiscardHandler)
	c.read = newlyunread.New(newlyunread.Config{Store: c.store, Projection: redis.NewNewlyUnread(c.reading), Logger: silent})
	c.fromStore = newlyunread.New(newlyunread.Config{Store: c.store, Logger: silent})
	return c, nil
}

func (c *copies) close() error {
	c.store.Close()
	return errors.Join(c.reading.Close(), c.keeping.Close(), c.raw.Close())
}

// working has something done while a worker works.
func working(ctx context.Context, config newlyunread.WorkerConfig, do func(context.Context, *newlyunread.Worker) error) error {
	config.Logger = slog.New(slog.DiscardHandler)
	worker := newlyunread.NewWorker(config)
	ctx, end := context.WithTimeout(ctx, drained)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	err := do(ctx, worker)
	end()
	return errors.Join(err, <-ended)
}

// kept is the configuration of a worker that keeps the copies right.
func (c *copies) kept() newlyunread.WorkerConfig {
	return newlyunread.WorkerConfig{Queue: c.store, Projection: redis.NewNewlyUnread(c.keeping)}
}

// look has people look at their icons, so that there are copies of them. A worker must be at work.
func (c *copies) look(ctx context.Context, people []id.User) error {
	for {
		marks, err := c.raw.Keys(ctx, "newly_unread_mark:*").Result()
		if err != nil {
			return err
		}
		if len(marks) == recipientMarks {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollOutbox):
		}
	}
	if len(people) == 0 {
		return nil
	}
	if _, err := c.read.Get(ctx, people[0], newlyunread.DefaultFirst); err != nil { // learns which store it is
		return err
	}
	for {
		away := c.read.Stats().Away
		if err := c.readAll(ctx, people); err != nil {
			return err
		}
		if c.read.Stats().Away == away { // on a busy machine Redis may be slow to answer, and is left alone for a moment
			break
		}
	}
	held, err := c.raw.DBSize(ctx).Result()
	if err == nil && held < int64(len(people)) {
		err = fmt.Errorf("there are %d keys of %d people", held, len(people))
	}
	return err
}

// readAll reads everybody's number once.
func (c *copies) readAll(ctx context.Context, people []id.User) error {
	var next atomic.Int64
	var callers sync.WaitGroup
	var failed [connections]error
	for caller := range failed {
		callers.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(people)) && failed[caller] == nil; n = next.Add(1) - 1 {
				_, failed[caller] = c.read.Get(ctx, people[n], newlyunread.DefaultFirst)
			}
		})
	}
	callers.Wait()
	return errors.Join(failed[:]...)
}

// calls returns how often the server was asked for commands, by itself or by scripts, by its own count.
func (c *copies) calls(ctx context.Context, commands ...string) (calls int64, err error) {
	for _, command := range commands {
		n, err := c.tells(ctx, "commandstats", "cmdstat_"+command+":calls=")
		if err != nil {
			return 0, err
		}
		calls += n
	}
	return calls, nil
}

// tells returns a number that the server tells of itself, and 0 where it does not.
func (c *copies) tells(ctx context.Context, section, name string) (n int64, err error) {
	info, err := c.raw.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(info, "\n"+name)
	if !found {
		return 0, nil
	}
	_, err = fmt.Sscanf(after, "%d", &n)
	return n, err
}
