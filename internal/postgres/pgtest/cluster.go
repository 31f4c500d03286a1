package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"tidemark/internal/embedded/engine"
	"tidemark/migrations"
)

const (
	dirPrefix = "tidemark-pgtest-"
	// sweepAge is how old a directory must be to be taken for one that a killed process has left, and not for one
	// that is just being made.
	sweepAge = time.Minute
)

// cluster is a Postgres in a temporary directory, with the migrated database engine.Database.
type cluster struct {
	postgres engine.Postgres
	process  *engine.Process
	dir      string
	hold     *os.File // on dir: what somebody holds is not swept away
}

func newCluster(ctx context.Context) (*cluster, error) {
	account, err := engine.AccountFor("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	found, err := engine.Machine{}.FindPostgres(ctx, account)
	if err != nil {
		return nil, err
	}
	sweep()
	dir, err := account.TempDir(dirPrefix)
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, postgres: engine.Postgres{
		Installation: found[0],
		Dir:          filepath.Join(dir, "data"),
		Log:          filepath.Join(dir, "log"),
		Account:      account,
		Volatile:     true,
	}}
	if err := c.run(ctx); err != nil {
		return nil, errors.Join(err, c.close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) run(ctx context.Context) error {
	var err error
	if c.hold, err = hold(c.dir); err != nil {
		return err
	}
	if err := c.postgres.Init(ctx); err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	return migrations.Up(ctx, c.postgres.URL(engine.Database))
}

func (c *cluster) start(ctx context.Context) error {
	process, err := c.postgres.Start(ctx)
	if err != nil {
		return err
	}
	c.process = process
	return nil
}

// close stops the server and removes all of it. One that was killed is started once more for that: only so does the
// shared memory go that it has left.
func (c *cluster) close(ctx context.Context) error {
	var errs []error
	if c.process != nil {
		select {
		case <-c.process.Done():
			errs = append(errs, c.start(ctx))
		default:
		}
		errs = append(errs, c.process.Stop())
	}
	errs = append(errs, os.RemoveAll(c.dir))
	if c.hold != nil {
		errs = append(errs, c.hold.Close())
	}
	return errors.Join(errs...)
}

// sweep removes the directories of test processes that were killed. It is a courtesy: where it fails, nothing is said.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*")) // its only error is a bad pattern
	for _, dir := range dirs {
		file, err := hold(dir)
		if err != nil {
			continue
		}
		if info, err := file.Stat(); err == nil && time.Since(info.ModTime()) > sweepAge {
			_ = os.RemoveAll(dir)
		}
		_ = file.Close()
	}
}

// hold locks a directory until the file is closed or the process ends. It fails where another holds it.
func hold(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
