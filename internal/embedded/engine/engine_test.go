package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPostgresKillTakesItsChildren(t *testing.T) {
	t.Parallel()
	server := newPostgres(t)
	process := start(t, server.Start)
	conn, err := pgx.Connect(t.Context(), server.URL(Database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	backend := int(conn.PgConn().PID())
	if !running(backend) {
		t.Fatalf("backend %d does not run", backend)
	}

	process.Kill()
	if running(process.PID()) || running(backend) {
		t.Error("the server or its backend still runs")
	}
	if process.Err() == nil {
		t.Error("a killed process counts as one that ended well")
	}
	port := server.Port
	start(t, server.Start)
	if server.Port != port {
		t.Errorf("started again on port %d, want %d", server.Port, port)
	}
}

func TestStartStopsWhatIsLeftOver(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(context.Context) (*Process, error){
		"Postgres": newPostgres(t).Start,
		"Redis":    newRedis(t).Start,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leftover := start(t, run)
			next := start(t, run)
			select {
			case <-leftover.Done():
			default:
				t.Error("two run on one directory")
			}
			select {
			case <-next.Done():
				t.Error("the new one has ended")
			default:
			}
		})
	}
}

func TestStartLeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	server := newPostgres(t)
	// This test's process stands for one that was given the number of a Postgres that died.
	pidFile := filepath.Join(server.Dir, "postmaster.pid")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, server.Start)
}

func TestStartEvadesATakenPort(t *testing.T) {
	t.Parallel()
	taken := newRedis(t)
	start(t, taken.Start)
	other := newRedis(t)
	other.PreferredPort = taken.Port
	start(t, other.Start)
	if other.Port == taken.Port {
		t.Error("two listen on one port")
	}
}

func TestStartQuotesTheEngine(t *testing.T) {
	t.Parallel()
	server := newPostgres(t)
	conf := filepath.Join(server.Dir, "postgresql.conf")
	if err := os.WriteFile(conf, []byte("no_such_setting = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := server.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") || !strings.Contains(err.Error(), server.Log) {
		t.Errorf("the error neither quotes the server nor names its log: %v", err)
	}
}

func TestStartEndsWithTheContext(t *testing.T) {
	t.Parallel()
	server := newPostgres(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := server.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

func TestInitIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	server := newPostgres(t)
	server.Dir += "-other"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.Init(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	left, err := filepath.Glob(server.Dir + "*")
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestRunningIsNotFooledByZombies(t *testing.T) {
	t.Parallel()
	child, err := syscall.ForkExec("/bin/true", []string{"true"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !awaitEnd(child, startTimeout) {
		t.Error("a process that nobody has waited for counts as running")
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(child, &status, 0, nil); err != nil {
		t.Error(err)
	}
}

func newPostgres(t *testing.T) *Postgres {
	t.Helper()
	account, err := AccountFor("postgres", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Machine{}.FindPostgres(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t, account)
	server := &Postgres{
		Installation: found[0],
		Dir:          filepath.Join(dir, "data"),
		Log:          filepath.Join(dir, "log"),
		Account:      account,
		Volatile:     true,
	}
	if err := server.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server
}

func newRedis(t *testing.T) *Redis {
	t.Helper()
	account, err := AccountFor("redis", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	found, err := Machine{}.FindRedis(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t, account)
	return &Redis{
		Installation: found[0], Dir: filepath.Join(dir, "data"), Log: filepath.Join(dir, "log"), Account: account,
	}
}

func tempDir(t *testing.T, account Account) string {
	t.Helper()
	dir, err := account.TempDir("tidemark-engine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, start func(context.Context) (*Process, error)) *Process {
	t.Helper()
	process, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
	})
	return process
}
