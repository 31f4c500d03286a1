package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// How long and how often to try, where the URL does not say. Every one of these is far shorter than go-redis has
// it: whoever waits for Redis can do without it.
const (
	dialTimeout = 500 * time.Millisecond
	ioTimeout   = 500 * time.Millisecond
	poolTimeout = 500 * time.Millisecond
	dialTries   = 1
	retries     = 1 // enough for the connections that a restart of Redis has broken
)

// Client is a pool of connections to one Redis. It is safe for concurrent use.
type Client struct {
	rdb    *goredis.Client
	single *goredis.Client         // the same pool, for calls that are not tried again
	server *atomic.Pointer[string] // the id of the server that was connected to last
}

// Open returns a client for a redis://, rediss:// or unix:// URL. Query parameters set what go-redis's Options have,
// such as ?pool_size=50. Open does not connect: Redis may be away at the start as at any other time.
func Open(rawURL string) (*Client, error) {
	opts, err := goredis.ParseURL(rawURL)
	if err != nil {
		var bad *url.Error
		if errors.As(err, &bad) {
			err = bad.Err // without the URL, which may hold a password
		}
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	return newClient(opts), nil
}

func newClient(opts *goredis.Options) *Client {
	opts.ContextTimeoutEnabled = true
	opts.DialTimeout = cmp.Or(opts.DialTimeout, dialTimeout)
	opts.ReadTimeout = cmp.Or(opts.ReadTimeout, ioTimeout)
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, ioTimeout)
	opts.PoolTimeout = cmp.Or(opts.PoolTimeout, poolTimeout)
	opts.MaxRetries = cmp.Or(opts.MaxRetries, retries)
	opts.DialerRetries = dialTries
	// Neither is of use here, and each costs a round trip for every new connection.
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	server := new(atomic.Pointer[string])
	opts.OnConnect = func(ctx context.Context, conn *goredis.Conn) error {
		info, err := conn.Info(ctx, "server").Result()
		var refused goredis.Error
		if err != nil && !errors.As(err, &refused) { // there may be an answer under way, which would be taken for the next one's
			return err
		}
		server.Store(new(runID(info))) // none where it may not be asked for
		return nil
	}

	goredis.SetLogger(driverLog{})
	rdb := goredis.NewClient(opts)
	single := rdb.WithTimeout(opts.ReadTimeout) // has options of its own
	single.Options().WriteTimeout = opts.WriteTimeout
	single.Options().MaxRetries = 0
	return &Client{rdb: rdb, single: single, server: server}
}

// serverID names the running server that was connected to last, and is empty where that is not known. A server that was
// restarted, or took over, has another. It is known before anything is asked on a new connection, and a server's connections end with it:
// so whatever an answer holds of another server's was not written by the one that gave it.
func (c *Client) serverID() string {
	if id := c.server.Load(); id != nil {
		return *id
	}
	return ""
}

func runID(info string) string {
	for line := range strings.Lines(info) {
		if id, found := strings.CutPrefix(line, "run_id:"); found {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

// Instrument hands each of the driver's clients to f, which may add hooks to it. It is for the time before the first call,
// and before the client is given to whatever else is made with it.
func (c *Client) Instrument(f func(goredis.UniversalClient) error) error {
	return errors.Join(f(c.rdb), f(c.single))
}

// Ping returns nil where Redis answers.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Close closes all connections.
func (c *Client) Close() error {
	return c.rdb.Close()
}

// driverLog takes what go-redis says by itself. What went wrong is also returned to the caller, which knows whether
// it matters, so here it is for debugging only.
type driverLog struct{}

func (driverLog) Printf(ctx context.Context, format string, args ...any) {
	if slog.Default().Enabled(ctx, slog.LevelDebug) {
		slog.DebugContext(ctx, "redis driver", "message", fmt.Sprintf(format, args...))
	}
}
