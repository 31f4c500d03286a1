package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"tidemark/internal/embedded/engine"
)

// ownerDir tells a process made by startOwner which data directory to own.
const ownerDir = "TIDEMARK_TEST_OWNER_DIR"

// patience bounds every wait for something that is sure to come.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerDir); dir != "" {
		beOwner(dir)
	}
	goleak.VerifyTestMain(m)
}

// beOwner opens the engines, says so on standard output, and lives until it is killed.
func beOwner(dir string) {
	engines, err := Open(context.Background(), Config{DataDir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open", engines.PostgresURL(), engines.RedisURL())
	select {}
}

// startOwner runs this test's program as another process that owns the engines of the directory.
func startOwner(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), ownerDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var word, postgresURL, redisURL string
	if _, err := fmt.Fscanln(out, &word, &postgresURL, &redisURL); err != nil || word != "open" {
		t.Fatalf("the other process says %q: %v", word, err)
	}
	return cmd
}

// dataDir makes a directory that the engines' accounts can pass into, unlike t.TempDir's.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := engine.Account{}.TempDir("tidemark-embedded-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open opens engines without a word, and closes them at the end of the test.
func open(t *testing.T, config Config) *Engines {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	engines, err := Open(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeEngines(t, engines) })
	return engines
}

func closeEngines(t *testing.T, engines *Engines) {
	t.Helper()
	if err := engines.Close(); err != nil {
		t.Error(err)
	}
}

// bare is a machine on which there is nothing but the programs named.
func bare(programs ...string) engine.Machine {
	return engine.Machine{
		Getenv: func(string) string { return "" },
		LookPath: func(file string) (string, error) {
			for _, program := range programs {
				if program == file {
					return exec.LookPath(file)
				}
			}
			return "", exec.ErrNotFound
		},
		Glob: func(string) ([]string, error) { return nil, nil },
	}
}

// eventually waits until there is no error any more.
func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		case <-ticker.C:
		}
	}
}

// query asks Postgres for one number.
func query(ctx context.Context, at, sql string) (n int, err error) {
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, sql).Scan(&n)
	return n, err
}

func mustQuery(t *testing.T, at, sql string) int {
	t.Helper()
	n, err := query(t.Context(), at, sql)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ping(ctx context.Context, at string) error {
	options, err := redis.ParseURL(at)
	if err != nil {
		return err
	}
	options.MaxRetries = -1
	client := redis.NewClient(options)
	defer client.Close()
	return client.Ping(ctx).Err()
}

func mustPing(t *testing.T, at string) {
	t.Helper()
	if err := ping(t.Context(), at); err != nil {
		t.Fatal(err)
	}
}

// gone returns an error for as long as somebody listens at the URL.
func gone(ctx context.Context, at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", u.Host)
	if err != nil {
		return errors.New("still listening: " + at)
	}
	return listener.Close()
}
