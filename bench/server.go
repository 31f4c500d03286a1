package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// stopGrace bounds how long a server may take to end.
const stopGrace = 15 * time.Second

// build makes the named programs and returns the directory that they are in.
func (l *lab) build(ctx context.Context, packages ...string) (string, error) {
	l.say("building %v", packages)
	return l.buildIn(ctx, "bin", packages...)
}

func (l *lab) buildIn(ctx context.Context, name string, args ...string) (string, error) {
	dir := filepath.Join(l.dir, name)
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", dir + "/"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
}

// server is a process that answers over HTTP.
type server struct {
	address string
	cmd     *exec.Cmd
	cancel  context.CancelFunc
	drained chan struct{} // closed when the last of its log was read
}

// serve starts a program and returns when its log tells the address that it serves on. Stop it.
func serve(ctx context.Context, env []string, program string, args ...string) (*server, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = slices.Concat(env, []string{"PATH=" + os.Getenv("PATH")})
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	s := &server{cmd: cmd, cancel: cancel, drained: make(chan struct{})}
	lines := bufio.NewReader(log)
	var told bytes.Buffer
	for s.address == "" {
		line, err := lines.ReadBytes('\n')
		told.Write(line)
		if err != nil {
			close(s.drained)
			return nil, fmt.Errorf("%s did not serve: %w\n%s", filepath.Base(program), errors.Join(err, s.stop()), &told)
		}
		var entry struct{ Address string }
		if json.Unmarshal(line, &entry) == nil {
			s.address = entry.Address
		}
	}
	go func() {
		defer close(s.drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	return s, nil
}

func (s *server) stop() error {
	s.cancel()
	<-s.drained
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stop %s: %w", filepath.Base(s.cmd.Path), err)
	}
	return nil
}

// client asks a server the same thing over and over, on one connection. It does less than net/http's, to leave the
// machine to the servers.
type client struct {
	conn    net.Conn
	reader  *bufio.Reader
	request *http.Request
	written []byte // the request as it travels
}

func dial(ctx context.Context, address string, request *http.Request) (*client, error) {
	var written bytes.Buffer
	if err := request.Write(&written); err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, reader: bufio.NewReader(conn), request: request, written: written.Bytes()}, nil
}

// ask returns the answer.
func (c *client) ask() ([]byte, error) {
	if _, err := c.conn.Write(c.written); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.reader, c.request)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err == nil {
		err = answered(answer)
	}
	return answer, errors.Join(err, response.Body.Close())
}
