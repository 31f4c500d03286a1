package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/embedded/engine"
	"tidemark/migrations"
)

// connections is how many a pool has here, Tidemark's and any other's, and how many callers use it at once.
const connections = 8

// lab is the engines that everything is measured on, with the data in them.
type lab struct {
	options
	scale
	dir       string
	postgres  engine.Postgres
	redis     engine.Redis
	processes []*engine.Process
	admin     *pgx.Conn
	progress  io.Writer
}

// scale is how much is measured.
type scale struct {
	gaps   []int         // how far devices are behind, ascending
	window time.Duration // how long callers call in one go
	calls  int           // how many calls are timed or counted in one go

	crowds     [2]int        // how many look at the same time: the large crowd and the small one
	connects   int           // how many connections are timed in one go
	deliveries int           // how many are timed in one go
	rest       time.Duration // how long a crowd is left alone before anything is measured of it

	senders [3]int // how many wrote to the people whose numbers are asked for
	busy    int    // how many messages the busiest sender wrote
	written int    // how many messages the table of the classic forms has
	waiting [2]int // how many messages wait in the outbox, of direct channels and of groups

	punched, hit, parts int // partitions, people in each and batches for each, of events most of which change nothing
	owners              int // how many people there are of whom some look at their icons
}

func scaleOf(quick bool) scale {
	if quick {
		return scale{
			gaps: []int{10, 100, 1000, 10_000, 30_000}, window: 100 * time.Millisecond, calls: 200,
			crowds: [2]int{200, 50}, connects: 50, deliveries: 1000, rest: 100 * time.Millisecond,
			senders: [3]int{10, 200, 2000}, busy: 1000, written: 30_000, waiting: [2]int{400, 20},
			punched: 2, hit: 100, parts: 2, owners: 2000,
		}
	}
	return scale{
		gaps: []int{10, 100, 1000, 100_000, 1_000_000}, window: 2 * time.Second, calls: 400,
		crowds: [2]int{10_000, 1000}, connects: 2000, deliveries: 100_000, rest: 5 * time.Second,
		senders: [3]int{10, 1000, 100_000}, busy: 10_000, written: 1_000_000, waiting: [2]int{20_000, 500},
		punched: 8, hit: 400, parts: 8, owners: 100_000,
	}
}

// openLab starts the engines and loads the data. Close it.
func openLab(ctx context.Context, opts options, progress io.Writer) (*lab, error) {
	account, err := engine.AccountFor("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	var machine engine.Machine
	postgres, err := machine.FindPostgres(ctx, account)
	if err != nil {
		return nil, err
	}
	redis, err := machine.FindRedis(ctx, account)
	if err != nil {
		return nil, err
	}
	dir, err := account.TempDir("tidemark-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{
		options: opts, scale: scaleOf(opts.quick), dir: dir, progress: progress,
		postgres: engine.Postgres{
			Installation: postgres[0], Account: account,
			Dir: filepath.Join(dir, "postgres"), Log: filepath.Join(dir, "postgres.log"),
		},
		redis: engine.Redis{
			Installation: redis[0], Account: account,
			Dir: filepath.Join(dir, "redis"), Log: filepath.Join(dir, "redis.log"),
		},
	}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.close(context.WithoutCancel(ctx)))
	}
	return l, nil
}

func (l *lab) start(ctx context.Context) error {
	l.say("starting Postgres and Redis")
	if err := l.postgres.Init(ctx); err != nil {
		return err
	}
	for _, start := range []func(context.Context) (*engine.Process, error){l.postgres.Start, l.redis.Start} {
		process, err := start(ctx)
		if err != nil {
			return err
		}
		l.processes = append(l.processes, process)
	}
	if err := migrations.Up(ctx, l.url()); err != nil {
		return err
	}
	admin, err := pgx.Connect(ctx, l.url())
	if err != nil {
		return err
	}
	l.admin = admin
	if err := l.calm(ctx); err != nil {
		return err
	}
	return l.load(ctx)
}

// calm keeps Postgres from work of its own, so that what is counted belongs to what was called. Commits are as durable
// as ever.
func (l *lab) calm(ctx context.Context) error {
	for _, sql := range []string{
		"ALTER SYSTEM SET autovacuum = off",
		"ALTER SYSTEM SET checkpoint_timeout = '1h'",
		"ALTER SYSTEM SET max_wal_size = '16GB'",
		"SELECT pg_reload_conf()",
	} {
		if _, err := l.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) close(ctx context.Context) error {
	var errs []error
	if l.admin != nil {
		errs = append(errs, l.admin.Close(ctx))
	}
	for _, p := range l.processes {
		errs = append(errs, p.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(l.dir))...)
}

func (l *lab) url() string { return l.postgres.URL(engine.Database) }

// poolURL is the same for pools of pgx alone.
func (l *lab) poolURL() string { return fmt.Sprintf("%s&pool_max_conns=%d", l.url(), connections) }

// describe says what the figures were measured on.
func (l *lab) describe(ctx context.Context, w io.Writer) error {
	var version, fsync, synchronousCommit string
	err := l.admin.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('fsync'),
		current_setting('synchronous_commit')`).Scan(&version, &fsync, &synchronousCommit)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "Postgres %s, fsync %s, synchronous_commit %s; %d cores, load average %s; %d rounds\n\n",
		version, fsync, synchronousCommit, runtime.NumCPU(), loadAverage(), l.rounds)
	return err
}

// say tells whoever waits how far it is.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(l.progress, "bench: "+format+"\n", args...)
}
