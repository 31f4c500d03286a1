package embedded

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"tidemark/internal/embedded/engine"
)

func TestDataAndPortsOutliveTheOwner(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)

	first := open(t, Config{DataDir: dir})
	if got := mustQuery(t, first.PostgresURL(), "SELECT lo_from_bytea(42, 'kept')::int"); got != 42 {
		t.Fatalf("large object %d was made, want 42", got)
	}
	mustPing(t, first.RedisURL())
	closeEngines(t, first)
	for _, at := range []string{first.PostgresURL(), first.RedisURL()} {
		if err := gone(t.Context(), at); err != nil {
			t.Error(err)
		}
	}

	second := open(t, Config{DataDir: dir})
	if got := mustQuery(t, second.PostgresURL(), "SELECT length(lo_get(42))"); got != len("kept") {
		t.Errorf("the second start finds %d bytes, want %d", got, len("kept"))
	}
	if second.PostgresURL() != first.PostgresURL() || second.RedisURL() != first.RedisURL() {
		t.Errorf("the second start is at %s and %s, want the first one's %s and %s",
			second.PostgresURL(), second.RedisURL(), first.PostgresURL(), first.RedisURL())
	}
}

func TestPostgresIsSetUpForUs(t *testing.T) {
	t.Parallel()
	engines := open(t, Config{DataDir: dataDir(t), RedisURL: "redis://127.0.0.1:1/0"})
	for setting, want := range map[string]string{
		"fsync":                   "on",
		"synchronous_commit":      "on",
		"full_page_writes":        "on",
		"server_encoding":         "UTF8",
		"lc_ctype":                "C",
		"TimeZone":                "UTC",
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"max_connections":         "200",
	} {
		got := mustQuery(t, engines.PostgresURL(),
			"SELECT (current_setting('"+setting+"') = '"+want+"')::int")
		if got != 1 {
			t.Errorf("%s is not %q", setting, want)
		}
	}
	names := "SELECT (current_user = 'tidemark' AND current_database() = 'tidemark')::int"
	if mustQuery(t, engines.PostgresURL(), names) != 1 {
		t.Error("user and database are not named tidemark")
	}
}

func TestKilledEnginesComeBackOnTheirPorts(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	engines := open(t, Config{DataDir: dir})
	before := lastRecord(dir)

	for _, pid := range []int{before.Postgres.PID, before.Redis.PID} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "new engines are on record", func(context.Context) error {
		now, err := liveRecord(dir)
		if err == nil && (now == nil || now.Postgres.PID == before.Postgres.PID || now.Redis.PID == before.Redis.PID) {
			err = errors.New("one is still the old one")
		}
		return err
	})
	mustQuery(t, engines.PostgresURL(), "SELECT 1")
	mustPing(t, engines.RedisURL())
}

func TestAttachedClosesNothing(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	owner := open(t, Config{DataDir: dir})
	attached := open(t, Config{DataDir: dir})
	if attached.PostgresURL() != owner.PostgresURL() || attached.RedisURL() != owner.RedisURL() {
		t.Errorf("attached to %s and %s, want %s and %s",
			attached.PostgresURL(), attached.RedisURL(), owner.PostgresURL(), owner.RedisURL())
	}
	closeEngines(t, attached)
	mustQuery(t, owner.PostgresURL(), "SELECT 1")
	mustPing(t, owner.RedisURL())
}

func TestManyAtOnceShareOnePair(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	var opening sync.WaitGroup
	all := make([]*Engines, 8)
	for i := range all {
		opening.Go(func() {
			var err error
			if all[i], err = Open(t.Context(), Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)}); err != nil {
				t.Error(err)
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		t.FailNow()
	}

	owners := 0
	for _, engines := range all {
		defer closeEngines(t, engines)
		if engines.owner != nil {
			owners++
		}
		if engines.PostgresURL() != all[0].PostgresURL() || engines.RedisURL() != all[0].RedisURL() {
			t.Errorf("one has %s and %s, another %s and %s", all[0].PostgresURL(), all[0].RedisURL(),
				engines.PostgresURL(), engines.RedisURL())
		}
	}
	if owners != 1 {
		t.Errorf("%d own the engines, want 1", owners)
	}
	mustQuery(t, all[0].PostgresURL(), "SELECT 1")
	mustPing(t, all[0].RedisURL())
}

func TestKilledOwnerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	other := startOwner(t, dir)
	attached := open(t, Config{DataDir: dir})
	if attached.owner != nil {
		t.Fatal("two own the engines of one directory")
	}
	mustQuery(t, attached.PostgresURL(), "SELECT lo_from_bytea(42, 'kept')::int")

	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	eventually(t, "the engines are gone", func(ctx context.Context) error {
		return errors.Join(gone(ctx, attached.PostgresURL()), gone(ctx, attached.RedisURL()))
	})

	next := open(t, Config{DataDir: dir})
	if next.owner == nil {
		t.Error("the next to open attached to a dead process")
	}
	if got := mustQuery(t, next.PostgresURL(), "SELECT length(lo_get(42))"); got != len("kept") {
		t.Errorf("%d bytes were kept, want %d", got, len("kept"))
	}
	mustPing(t, next.RedisURL())
	if next.PostgresURL() != attached.PostgresURL() || next.RedisURL() != attached.RedisURL() {
		t.Error("the next owner has other ports")
	}
}

func TestOwnerRightAfterAKilledOne(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	other := startOwner(t, dir)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	next := open(t, Config{DataDir: dir}) // while the dead one's engines are still on their way out
	mustQuery(t, next.PostgresURL(), "SELECT 1")
	mustPing(t, next.RedisURL())
}

func TestUnreachableDataDirIsNamed(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(dataDir(t), "blocked")
	mode := os.FileMode(0o700) // root's own, which its engines cannot pass
	if os.Geteuid() != 0 {
		mode = 0
	}
	if err := os.Mkdir(blocked, mode); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Config{DataDir: filepath.Join(blocked, "data")})
	if err == nil || !strings.Contains(err.Error(), blocked) || !strings.Contains(err.Error(), "mode 0700") && mode != 0 {
		t.Errorf("the error does not name %s: %v", blocked, err)
	}
}

func TestBareMachine(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{DataDir: dataDir(t), Machine: bare()})
	if err == nil {
		t.Fatal("there is a Postgres where there is nothing")
	}
	for _, part := range []string{
		"$PGBIN: nothing", "postgres on PATH: nothing", "pg_config", "npm on PATH: nothing",
		"apt install postgresql", "URL of a running server",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

func TestStandInForRedis(t *testing.T) {
	t.Parallel()
	config := Config{DataDir: dataDir(t), PostgresURL: "postgres://127.0.0.1:1/none", Machine: bare()}
	engines := open(t, config)
	attached := open(t, config)
	if attached.RedisURL() != engines.RedisURL() {
		t.Errorf("attached to %s, want %s", attached.RedisURL(), engines.RedisURL())
	}
	options, err := redis.ParseURL(attached.RedisURL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := client.Set(t.Context(), "brief", "x", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key expires", func(ctx context.Context) error {
		if err := client.Get(ctx, "brief").Err(); !errors.Is(err, redis.Nil) {
			return errors.Join(errors.New("it is still there"), err)
		}
		return nil
	})
}

func TestPostgresFromNPM(t *testing.T) {
	t.Parallel()
	config := Config{DataDir: dataDir(t), RedisURL: "redis://127.0.0.1:1/0", Machine: bare("npm")}
	first := open(t, config)
	mustQuery(t, first.PostgresURL(), "SELECT lo_from_bytea(42, 'kept')::int")
	closeEngines(t, first)

	config.Machine = bare() // what was fetched is still there
	second := open(t, config)
	if got := mustQuery(t, second.PostgresURL(), "SELECT length(lo_get(42))"); got != len("kept") {
		t.Errorf("%d bytes were kept, want %d", got, len("kept"))
	}
	closeEngines(t, second)

	config.Machine = engine.Machine{} // and so it is where the machine has others
	third := open(t, config)
	if got := mustQuery(t, third.PostgresURL(), "SELECT length(lo_get(42))"); got != len("kept") {
		t.Errorf("beside other installations %d bytes are in sight, want %d", got, len("kept"))
	}
}

func TestGivenURLsStartNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(dataDir(t), "none")
	config := Config{DataDir: dir, PostgresURL: "postgres://127.0.0.1:1/a", RedisURL: "redis://127.0.0.1:1/0"}
	engines := open(t, config)
	if engines.PostgresURL() != config.PostgresURL || engines.RedisURL() != config.RedisURL {
		t.Errorf("got %s and %s", engines.PostgresURL(), engines.RedisURL())
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a data directory was made: %v", err)
	}
}

func TestAttachToAnOwnerThatLacksAnEngine(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	open(t, Config{DataDir: dir, PostgresURL: "postgres://127.0.0.1:1/a", Machine: bare()})
	_, err := Open(t.Context(), Config{DataDir: dir})
	if err == nil || !strings.Contains(err.Error(), "runs no Postgres") {
		t.Errorf("got error %v, want one that says that the owner runs no Postgres", err)
	}
}

func TestRunningStartsNothing(t *testing.T) {
	t.Parallel()
	none := filepath.Join(dataDir(t), "none")
	if _, err := Running(Config{DataDir: none}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without a directory: got error %v, want %v", err, ErrNotRunning)
	}
	if _, err := os.Stat(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a data directory was made: %v", err)
	}

	dir := dataDir(t)
	owner := open(t, Config{DataDir: dir})
	found, err := Running(Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if found.PostgresURL() != owner.PostgresURL() || found.RedisURL() != owner.RedisURL() {
		t.Errorf("found %s and %s, want %s and %s", found.PostgresURL(), found.RedisURL(), owner.PostgresURL(), owner.RedisURL())
	}
	closeEngines(t, owner)
	if _, err := Running(Config{DataDir: dir}); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the owner has ended: got error %v, want %v", err, ErrNotRunning)
	}
}

func TestWaitForTheOwnerEndsWithTheContext(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	lock, err := takeLock(filepath.Join(dir, "owner.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	// What a dead owner has left must not be taken for the engines of the one that is starting.
	stale, err := record{Postgres: &endpoint{URL: "postgres://stale"}, Redis: &endpoint{URL: "redis://stale"}}.write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Config{DataDir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}
