package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"tidemark/internal/embedded/engine"
)

const (
	// openTimeout bounds Open, whether it fetches and starts engines or waits for another process to do so.
	openTimeout = 10 * time.Minute
	// ownerPoll is how often a waiting process looks whether there are engines, or no owner.
	ownerPoll = 20 * time.Millisecond
)

// ErrNotRunning says that no process runs engines in the data directory.
var ErrNotRunning = errors.New("no engines run in the data directory")

// Config says which engines to use. The zero Config runs both of them in the default data directory.
type Config struct {
	// DataDir is where the engines keep what is theirs. Empty means DefaultDataDir.
	DataDir string
	// PostgresURL is a Postgres that runs already. Empty means to run one.
	PostgresURL string
	// RedisURL is a Redis that runs already. Empty means to run one.
	RedisURL string
	// Logger is told what was chosen, and of engines that ended unasked. Nil means slog.Default.
	Logger *slog.Logger
	// Machine is where programs are looked for. The zero Machine is the one that we run on.
	Machine engine.Machine
}

// Engines is a Postgres and a Redis to work with.
type Engines struct {
	postgresURL string
	redisURL    string
	owner       *owner // nil where another process or nobody is
}

// Open returns engines that answer. It starts those for which there is no URL, unless another process has them running
// in the same data directory. The context bounds the opening, not the engines' life: that ends with Close.
func Open(ctx context.Context, config Config) (*Engines, error) {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.PostgresURL != "" {
		config.Logger.Info("Postgres: the URL that was given")
	}
	if config.RedisURL != "" {
		config.Logger.Info("Redis: the URL that was given")
	}
	if config.PostgresURL != "" && config.RedisURL != "" {
		return &Engines{postgresURL: config.PostgresURL, redisURL: config.RedisURL}, nil
	}
	dir, err := makeDataDir(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	config.DataDir = dir
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return config.ownOrAttach(ctx)
}

// Running returns the engines that are given and, in place of those that are not, the ones that another process has
// running in the data directory. It starts nothing and makes no directory: where nobody does, it is ErrNotRunning.
func Running(config Config) (*Engines, error) {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.PostgresURL != "" && config.RedisURL != "" {
		return &Engines{postgresURL: config.PostgresURL, redisURL: config.RedisURL}, nil
	}
	dir, err := resolveDataDir(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	config.DataDir = dir
	current, err := liveRecord(dir)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, fmt.Errorf("%w %s", ErrNotRunning, dir)
	}
	return config.attach(*current)
}

// PostgresURL is where to connect to Postgres, database included.
func (e *Engines) PostgresURL() string { return e.postgresURL }

// RedisURL is where to connect to Redis.
func (e *Engines) RedisURL() string { return e.redisURL }

// Close ends the engines that were started here and returns when they are gone. The error says which had to be killed.
// It may be called more than once.
func (e *Engines) Close() error {
	if e.owner == nil {
		return nil
	}
	return e.owner.close()
}

// ownOrAttach becomes the owner or finds the one there is, whichever comes first.
func (c Config) ownOrAttach(ctx context.Context) (*Engines, error) {
	ticker := time.NewTicker(ownerPoll)
	defer ticker.Stop()
	for {
		lock, err := takeLock(filepath.Join(c.DataDir, "owner.lock"))
		if err == nil {
			return c.own(ctx, lock)
		}
		if !errors.Is(err, errLocked) {
			return nil, err
		}
		current, err := liveRecord(c.DataDir)
		if err != nil {
			return nil, err
		}
		if current != nil {
			return c.attach(*current)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the engines of the process that owns %s: %w", c.DataDir, ctx.Err())
		case <-ticker.C:
		}
	}
}

// attach uses the engines of another process.
func (c Config) attach(current record) (*Engines, error) {
	engines := Engines{postgresURL: c.PostgresURL, redisURL: c.RedisURL}
	for _, need := range []struct {
		name string
		url  *string
		has  *endpoint
	}{
		{"Postgres", &engines.postgresURL, current.Postgres},
		{"Redis", &engines.redisURL, current.Redis},
	} {
		if *need.url != "" {
			continue
		}
		if need.has == nil {
			return nil, fmt.Errorf("process %d owns %s and runs no %s, for it was given a URL: "+
				"give the same URL here, or use another data directory", current.OwnerPID, c.DataDir, need.name)
		}
		*need.url = need.has.URL
		c.Logger.Info(need.name+": the one of another process", "owner", current.OwnerPID, "url", need.has.URL)
	}
	return &engines, nil
}

// DefaultDataDir is where data are kept when nothing else is said: /var/lib/tidemark for root, for others tidemark
// below $XDG_DATA_HOME or ~/.local/share.
func DefaultDataDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/tidemark", nil
	}
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "tidemark"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "share", "tidemark"), nil
}

// resolveDataDir returns the absolute path of the directory, whether there is one or not.
func resolveDataDir(dir string) (string, error) {
	if dir == "" {
		var err error
		if dir, err = DefaultDataDir(); err != nil {
			return "", err
		}
	}
	return filepath.Abs(dir)
}

// makeDataDir makes the directory where there is none, and returns its absolute path. Root's engines are not root, and
// must be able to pass through it.
func makeDataDir(dir string) (string, error) {
	dir, err := resolveDataDir(dir)
	if err != nil {
		return "", err
	}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o755
	}
	return dir, os.MkdirAll(dir, mode)
}
