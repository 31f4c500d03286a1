// Package redistest gives each test a Redis of its own: a real one, which starts empty, keeps nothing on disk, and may
// be killed or paused without another test's notice. Where the machine has no Redis the test fails; it is never
// skipped.
package redistest

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tidemark/internal/embedded/engine"
)

// Server is a Redis. Its methods are for one goroutine at a time, and fail the test where they fail.
type Server struct {
	tb      testing.TB
	redis   engine.Redis
	process *engine.Process
}

// New starts a Redis that lives as long as the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	account, err := engine.AccountFor("redis", "nobody")
	if err != nil {
		tb.Fatal(err)
	}
	found, err := engine.Machine{}.FindRedis(tb.Context(), account)
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := account.TempDir("tidemark-redistest-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	s := &Server{tb: tb, redis: engine.Redis{
		Installation: found[0],
		Dir:          filepath.Join(dir, "data"),
		Log:          filepath.Join(dir, "log"),
		Account:      account,
	}}
	s.Start()
	if s.process == nil {
		tb.FailNow()
	}
	tb.Cleanup(s.Kill)
	return s
}

// URL is where to connect. It stays the same for as long as the test runs.
func (s *Server) URL() string { return s.redis.URL() }

// Start starts a Redis that was killed, on the same port and with nothing in it.
func (s *Server) Start() {
	s.tb.Helper()
	process, err := s.redis.Start(context.WithoutCancel(s.tb.Context()))
	if err != nil {
		s.tb.Error(err)
		return
	}
	s.process = process
}

// Kill ends the Redis at once with SIGKILL, paused or not. Connections break and new ones are refused.
func (s *Server) Kill() { s.process.Kill() }

// Pause stops the Redis from running: connections stay open and are not answered until Resume.
func (s *Server) Pause() {
	s.tb.Helper()
	s.signal(syscall.SIGSTOP)
}

// Resume lets a paused Redis run again. It answers what it was asked meanwhile.
func (s *Server) Resume() {
	s.tb.Helper()
	s.signal(syscall.SIGCONT)
}

func (s *Server) signal(signal syscall.Signal) {
	s.tb.Helper()
	if err := s.process.Signal(signal); err != nil {
		s.tb.Errorf("%v: %v", signal, err)
	}
}
