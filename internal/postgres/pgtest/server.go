package pgtest

import (
	"context"
	"testing"

	"tidemark/internal/embedded/engine"
)

// Server is a Postgres of one test's own. Its methods are for one goroutine at a time, and fail the test where they
// fail.
type Server struct {
	tb      testing.TB
	cluster *cluster
}

// NewServer starts a Postgres with one migrated database. It lives as long as the test.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	cluster, err := newCluster(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := cluster.close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return &Server{tb: tb, cluster: cluster}
}

// URL is where to connect to the database. It stays the same for as long as the test runs.
func (s *Server) URL() string { return s.cluster.postgres.URL(engine.Database) }

// Kill ends the Postgres at once with SIGKILL, its backends and all, and returns when they are gone.
func (s *Server) Kill() { s.cluster.process.Kill() }

// Start starts a Postgres that was killed, on the same port. It returns when the Postgres has recovered and answers.
func (s *Server) Start() {
	s.tb.Helper()
	if err := s.cluster.start(context.WithoutCancel(s.tb.Context())); err != nil {
		s.tb.Error(err)
	}
}
