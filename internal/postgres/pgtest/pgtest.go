package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"tidemark/internal/embedded/engine"
)

// startTimeout bounds the start of a server, its cluster's making and migration included.
const startTimeout = 2 * time.Minute

// shared is the server of this test process.
//
//nolint:gochecknoglobals // tests of one process have nothing else in common to keep it in
var shared sharedCluster

type sharedCluster struct {
	once    sync.Once
	cluster *cluster
	err     error
	copies  atomic.Int64
}

// Main runs a package's tests, stops the server that they used, looks for goroutines left behind, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// NewDatabase makes an empty, migrated database and returns its URL. It is dropped at the end of the test, whoever is
// still connected.
func NewDatabase(tb testing.TB) string {
	tb.Helper()
	postgres, err := shared.get()
	if err != nil {
		tb.Fatal(err)
	}
	name := "test_" + strconv.FormatInt(shared.copies.Add(1), 10)
	admin := postgres.URL("postgres")
	ctx := context.WithoutCancel(tb.Context()) // for the end of the test, when the test's own context has ended
	if err := exec(ctx, admin, "CREATE DATABASE "+name+" TEMPLATE "+engine.Database+" STRATEGY file_copy"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := exec(ctx, admin, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Error(err)
		}
	})
	return postgres.URL(name)
}

// get starts the server at its first call. A server that cannot be started is not tried again.
func (s *sharedCluster) get() (*engine.Postgres, error) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.cluster, s.err = newCluster(ctx)
	})
	if s.err != nil {
		return nil, s.err
	}
	return &s.cluster.postgres, nil
}

func (s *sharedCluster) close() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.close(context.Background())
}

func exec(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
