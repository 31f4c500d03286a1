package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Database is the name of the database that every Postgres started here has, and of the superuser that owns it.
const Database = "tidemark"

// Postgres is one cluster and how to run it.
type Postgres struct {
	Installation Installation
	// Dir is the cluster's directory, an absolute path. Init makes it.
	Dir string
	// Log is the file that the server's output is added to.
	Log string
	// Port is where the server listens. Where it is zero, the first Start sets it to one that is free.
	Port int
	// PreferredPort is the one that the first Start takes if it is free. Zero means no preference.
	PreferredPort int
	// Account is who the server runs as, and who owns Dir.
	Account Account
	// Volatile gives up durability against the loss of power, for speed. Data outlive a killed server all the same.
	Volatile bool
}

// URL is where to connect to a database of this server, once it has been started.
func (p *Postgres) URL(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", Database, address(p.Port), database)
}

// Init makes the cluster where there is none. One that was cut short never looks like a whole one.
func (p *Postgres) Init(ctx context.Context) error {
	if err := p.init(ctx); err != nil {
		return fmt.Errorf("make the Postgres cluster %s: %w", p.Dir, err)
	}
	return nil
}

func (p *Postgres) init(ctx context.Context) error {
	parent := filepath.Dir(p.Dir)
	if err := p.Account.Reach(parent); err != nil {
		return err
	}
	_, err := os.Stat(p.Dir)
	if err == nil {
		return p.Account.own(p.Dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	work, err := draftOf(p.Dir)
	if err != nil {
		return err
	}
	if err := p.fill(ctx, work); err != nil {
		return errors.Join(err, os.RemoveAll(work))
	}
	return syncDir(parent)
}

// fill makes the cluster in a directory of its own, and puts it in its place when it is whole.
func (p *Postgres) fill(ctx context.Context, work string) error {
	if err := p.Account.own(work); err != nil {
		return err
	}
	if err := p.initdb(ctx, work); err != nil {
		return err
	}
	return os.Rename(work, p.Dir)
}

func (p *Postgres) initdb(ctx context.Context, dir string) error {
	log, err := openLog(p.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.Installation.tool("initdb"),
		"-D", dir, "-U", Database, "-A", "trust", "-E", "UTF8", "--locale=C")
	if p.Volatile {
		cmd.Args = append(cmd.Args, "--no-sync")
	}
	cmd.Stdout, cmd.Stderr = log, log
	process, err := launch(cmd, p.Account, syscall.SIGTERM) // at which initdb clears away what it has made
	if err != nil {
		return err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), process.Stop())
	}
	if err := process.Err(); err != nil {
		return log.explain(fmt.Errorf("initdb: %w", err))
	}
	return nil
}

// Start runs the server and returns when it answers and has the database named Database. Before that it stops
// whatever an earlier process has left running on the cluster, so nothing that is still wanted may run there.
func (p *Postgres) Start(ctx context.Context) (*Process, error) {
	if err := reclaim(filepath.Join(p.Dir, "postmaster.pid"), p.Dir, syscall.SIGINT); err != nil {
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	process, err := tryPorts(ctx, &p.Port, p.PreferredPort, p.startOn)
	if err != nil {
		return nil, fmt.Errorf("start Postgres: %w", err)
	}
	return process, nil
}

func (p *Postgres) startOn(ctx context.Context, port int) (*Process, error) {
	log, err := openLog(p.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(p.Installation.Server,
		"-D", p.Dir,
		"-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", // a path below Dir may be longer than a socket's can be
		"-c", "max_connections=200",
		"-c", "timezone=UTC",
		"-c", "log_timezone=UTC")
	if p.Volatile {
		cmd.Args = append(cmd.Args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	cmd.Stdout, cmd.Stderr = log, log
	process, err := launch(cmd, p.Account, syscall.SIGINT)
	if err != nil {
		return nil, err
	}
	there := Postgres{Dir: p.Dir, Port: port}
	err = process.await(ctx, there.ready)
	if err == nil {
		err = there.makeDatabase(ctx)
	}
	if err != nil {
		return nil, log.explain(errors.Join(err, process.Stop()))
	}
	return process, nil
}

// ready checks that the server answers, and is the one on this cluster.
func (p *Postgres) ready(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var dir string
	if err := conn.QueryRow(ctx, "SELECT current_setting('data_directory')").Scan(&dir); err != nil {
		return err
	}
	if dir != p.Dir {
		return fmt.Errorf("port %d has a Postgres on %s, not on %s", p.Port, dir, p.Dir)
	}
	return nil
}

// makeDatabase makes the database named Database where there is none.
func (p *Postgres) makeDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var made bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", Database).Scan(&made)
	if err != nil || made {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+Database)
	return err
}
