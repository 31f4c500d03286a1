package engine

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Redis is a server that keeps nothing on disk: each Start finds it empty.
type Redis struct {
	Installation Installation
	// Dir is the server's directory, an absolute path. Start makes it.
	Dir string
	// Log is the file that the server's output is added to.
	Log string
	// Port is where the server listens. Where it is zero, the first Start sets it to one that is free.
	Port int
	// PreferredPort is the one that the first Start takes if it is free. Zero means no preference.
	PreferredPort int
	// Account is who the server runs as, and who owns Dir.
	Account Account
}

// URL is where to connect, once the server has been started.
func (r *Redis) URL() string { return "redis://" + address(r.Port) + "/0" }

// Start runs the server and returns when it answers. Before that it stops whatever an earlier process has left
// running on Dir, so nothing that is still wanted may run there.
func (r *Redis) Start(ctx context.Context) (*Process, error) {
	process, err := r.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	return process, nil
}

func (r *Redis) start(ctx context.Context) (*Process, error) {
	if err := r.Account.Reach(filepath.Dir(r.Dir)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := r.Account.own(r.Dir); err != nil {
		return nil, err
	}
	if err := reclaim(r.pidFile(), r.Dir, syscall.SIGTERM); err != nil {
		return nil, err
	}
	return tryPorts(ctx, &r.Port, r.PreferredPort, r.startOn)
}

func (r *Redis) startOn(ctx context.Context, port int) (*Process, error) {
	log, err := openLog(r.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(r.Installation.Server,
		"--port", strconv.Itoa(port),
		"--bind", "127.0.0.1",
		"--protected-mode", "yes",
		"--save", "",
		"--appendonly", "no",
		"--daemonize", "no",
		"--set-proc-title", "no", // reclaim knows it by its arguments
		"--dir", r.Dir,
		"--pidfile", r.pidFile())
	cmd.Stdout, cmd.Stderr = log, log
	process, err := launch(cmd, r.Account, syscall.SIGTERM)
	if err != nil {
		return nil, err
	}
	err = process.await(ctx, func(ctx context.Context) error { return ready(ctx, port, process.PID()) })
	if err != nil {
		return nil, log.explain(errors.Join(err, process.Stop()))
	}
	return process, nil
}

// ready checks that the Redis on the port answers and is the given process.
func ready(ctx context.Context, port, pid int) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, "INFO server\r\n"); err != nil {
		return err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch {
		case key == "process_id" && value == strconv.Itoa(pid):
			return nil
		case key == "process_id":
			return fmt.Errorf("port %d has another Redis, process %s", port, value)
		case strings.HasPrefix(key, "-"):
			return fmt.Errorf("port %d answers %q", port, lines.Text())
		}
	}
	return fmt.Errorf("port %d has no Redis: %w", port, cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

func (r *Redis) pidFile() string { return filepath.Join(r.Dir, "redis.pid") }
