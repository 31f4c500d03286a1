package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/inspect"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/postgres/internal/dbsqlc"
	"tidemark/internal/readstate"
	"tidemark/internal/verify"
)

// Config says how to reach Postgres. Zero durations and sizes stand for the defaults named.
type Config struct {
	URL string
	// MaxConnections bounds the pool: 16 where it is 0 and the URL has no pool_max_conns.
	MaxConnections int
	// StatementTimeout ends a statement on the server: 5 s.
	StatementTimeout time.Duration
	// LockTimeout ends the wait for a lock on the server: 3 s.
	LockTimeout time.Duration
	// NewlyUnreadMaxMembers is the largest group in which every message counts as newly unread: 100.
	NewlyUnreadMaxMembers int
	// Tracer, if set, sees every query.
	Tracer pgx.QueryTracer
}

const (
	defaultMaxConnections   = 16
	defaultStatementTimeout = 5 * time.Second
	defaultLockTimeout      = 3 * time.Second
	// idleInTransactionTimeout ends a transaction of a process that is stuck or gone, so that its locks go.
	idleInTransactionTimeout = 10 * time.Second
	connectTimeout           = 5 * time.Second
)

// Store keeps everything that must last.
type Store struct {
	pool       *pgxpool.Pool
	q          *dbsqlc.Queries
	maxMembers int32
}

var (
	_ readstate.Store   = (*Store)(nil)
	_ channel.Store     = (*Store)(nil)
	_ delivery.Store    = (*Store)(nil)
	_ live.Store        = (*Store)(nil)
	_ newlyunread.Store = (*Store)(nil)
	_ newlyunread.Queue = (*Store)(nil)
	_ verify.Store      = (*Store)(nil)
	_ inspect.Store     = (*Store)(nil)
	_ person.Store      = (*Store)(nil)
)

// Open returns a store whose connections are made when they are needed: it does not fail because Postgres is away.
// Close it.
func Open(ctx context.Context, config Config) (*Store, error) {
	pool, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	conn := pool.ConnConfig
	conn.ConnectTimeout = connectTimeout
	conn.Tracer = config.Tracer
	for name, value := range map[string]string{
		"application_name":                    "tidemark",
		"statement_timeout":                   milliseconds(config.StatementTimeout, defaultStatementTimeout),
		"lock_timeout":                        milliseconds(config.LockTimeout, defaultLockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleInTransactionTimeout, 0),
		// Every statement reads few rows by their keys, from memory as a rule: to scan a table, or to compile a plan for
		// its cost, is never worth it.
		"random_page_cost": "1.1",
		"jit":              "off",
	} {
		if _, given := conn.RuntimeParams[name]; !given {
			conn.RuntimeParams[name] = value
		}
	}

	switch given, err := pgx.ParseConfig(config.URL); {
	case err != nil:
		return nil, fmt.Errorf("open postgres: %w", err)
	case config.MaxConnections > 0:
		pool.MaxConns = int32(min(config.MaxConnections, 1000))
	case given.RuntimeParams["pool_max_conns"] == "":
		pool.MaxConns = defaultMaxConnections
	}
	pool.MaxConnLifetime = 30 * time.Minute
	pool.MaxConnLifetimeJitter = 5 * time.Minute
	pool.MaxConnIdleTime = 5 * time.Minute

	opened, err := pgxpool.NewWithConfig(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	members := cmp.Or(config.NewlyUnreadMaxMembers, newlyunread.DefaultMaxMembers)
	return &Store{pool: opened, q: dbsqlc.New(), maxMembers: int32(min(members, 1_000_000))}, nil //nolint:gosec // bounded on the line
}

// Close waits for connections in use to come back, and closes them all.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether Postgres answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping postgres: %w", translate(err))
	}
	return nil
}

// Stat tells how the pool is used.
func (s *Store) Stat() *pgxpool.Stat { return s.pool.Stat() }

// inTx runs f in a transaction: what it did is committed, or nothing of it where it returns an error.
func (s *Store) inTx(ctx context.Context, f func(pgx.Tx) error) error {
	return translate(pgx.BeginFunc(ctx, s.pool, f))
}

func milliseconds(d, otherwise time.Duration) string {
	return strconv.FormatInt(cmp.Or(d, otherwise).Milliseconds(), 10)
}
