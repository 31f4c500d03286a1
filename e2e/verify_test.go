package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
)

func TestVerifyFindsDrift(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	s.as(2).sends(channel, 5)
	s.as(2).delete(channel, 2)
	verify := func(args ...string) (int, string) {
		t.Helper()
		code, out, _ := run(t, []string{"DATABASE_URL=" + s.database}, append([]string{"verify", "--quiet"}, args...)...)
		return code, out
	}
	code, out := verify()
	expect(t, "the exit code", code, 0)
	expect(t, "what it prints", out, "3 people in 1 channels, 0 drifted, 0 repaired; copies not looked at: no --redis-url\n")
	code, _ = verify("--sample", "5")
	expect(t, "the exit code of a sample", code, 0)

	conn := connect(t, s.database)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE channel_head SET last_deleted_seq = 0`); err != nil {
		t.Fatal(err)
	}
	code, out = verify()
	expect(t, "the exit code with drift", code, 1)
	if !strings.Contains(out, "person 1 in channel "+channel+": unread 5, counted 4\n") {
		t.Errorf("it prints\n%s", out)
	}

	code, out = verify("--repair")
	expect(t, "the exit code of a repair", code, 1)
	repaired := "repaired channel " + channel + ": last_deleted_seq 0, counted 2\n"
	if !strings.Contains(out, repaired) || !strings.HasSuffix(out, "3 people in 1 channels, 3 drifted, 1 repaired; copies not looked at: no --redis-url\n") {
		t.Errorf("a repair prints\n%s", out)
	}
	code, out = verify()
	expect(t, "the exit code after a repair", code, 0)
	expect(t, "what it prints after a repair", out, "3 people in 1 channels, 0 drifted, 0 repaired; copies not looked at: no --redis-url\n")
}

func TestServersVerifyASample(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_VERIFY_EVERY=100ms")
	channel := s.group(1, 2, 3)
	s.as(2).sends(channel, 5)
	says := func(line string) func() bool {
		return func() bool { return strings.Contains(s.as(1).get("/metrics").body, "\n"+line) }
	}
	eventually(t, "people are verified", func() bool { return !says("tidemark_verify_people_total 0\n")() })
	expect(t, "drift of badges", says(`tidemark_verify_drift_total{kind="badge"} 0`)(), true)
	expect(t, "drift of newly unread", says(`tidemark_verify_drift_total{kind="newly_unread"} 0`)(), true)
	expect(t, "what is skipped", says("tidemark_verify_skipped_total 0")(), true)

	conn := connect(t, s.database)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE channel_head SET high_water_seq = 6`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "drift is found", func() bool { return !says(`tidemark_verify_drift_total{kind="badge"} 0`)() })
	s.says(`"msg":"a badge is not what the messages say","drift":"(person 1 in channel ` + channel + `: unread 6, counted 5)"`)
}

// Commands that look at what there is start no engine to find it empty, and say what they lack.
func TestVerifyNeedsADatabase(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	bare := newEngines(t)
	_, name := named(t, bare.database)
	administer(t, bare.database, "DROP DATABASE "+name, "CREATE DATABASE "+name+" TEMPLATE template0")
	for _, command := range []struct {
		code int
		args []string
	}{
		{2, []string{"verify"}},
		{1, []string{"rebuild", "newly-unread"}},
		{1, []string{"explain", "--user", "1", "--channel", "1"}},
	} {
		for says, settings := range map[string][]string{
			"no database: set DATABASE_URL, or --data-dir where tidemark dev runs": {"TIDEMARK_DATA_DIR=" + dir},
			"run tidemark migrate first": {"DATABASE_URL=" + bare.database, "REDIS_URL=" + bare.redis.URL()},
		} {
			code, stdout, stderr := run(t, settings, command.args...)
			expect(t, "the exit code", code, command.code)
			expect(t, "what is printed", stdout, "")
			if !strings.Contains(stderr, says) {
				t.Errorf("%v says %s and not %q", command.args, stderr, says)
			}
		}
	}
	code, _, _ := run(t, []string{"DATABASE_URL=postgres://127.0.0.1:1/x"}, "verify")
	expect(t, "the exit code where Postgres is away", code, 2)
	untouched(t, dir)

	running := dataDir(t)
	s := dev(t, running)
	code, stdout, _ := run(t, []string{"TIDEMARK_DATA_DIR=" + running}, "verify", "--quiet")
	expect(t, "the exit code beside dev", code, 0)
	expect(t, "what it prints", stdout, "5 people in 5 channels, 0 drifted, 0 repaired\n")
	s.stop()
}

// Copies of newly unread that say something else than Postgres are found, and made anew; so are all on demand.
func TestVerifyAndRebuildCopies(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	s.as(2).send(channel, "hello")
	s.settle()
	s.warm(1)
	command := func(args ...string) (int, string) {
		t.Helper()
		code, out, _ := run(t, []string{"DATABASE_URL=" + s.database, "REDIS_URL=" + s.redis.URL()}, append(args, "--quiet")...)
		return code, out
	}
	code, out := command("verify")
	expect(t, "the exit code", code, 0)
	expect(t, "what it prints", out, "3 people in 1 channels, 0 drifted, 0 repaired\n")

	rdb := s.rdb(t)
	defer rdb.Close()
	for name, damage := range map[string]func() error{
		"somebody who never wrote": func() error {
			return rdb.ZAdd(t.Context(), "newly_unread:{1}", goredis.Z{Score: 5e15, Member: "77"}).Err()
		},
		"somebody is missing": func() error { return rdb.ZRem(t.Context(), "newly_unread:{1}", "2").Err() },
	} {
		s.warm(1)
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		code, out = command("verify")
		expect(t, name+": the exit code", code, 1)
		if !strings.Contains(out, "person 1, newly unread: projected ") {
			t.Errorf("%s: it prints\n%s", name, out)
		}
		code, _ = command("verify", "--repair")
		expect(t, name+": the exit code of a repair", code, 1)
		code, out = command("verify")
		expect(t, name+": the exit code after a repair", code, 0)
		expect(t, name+": what it prints after a repair", out, "3 people in 1 channels, 0 drifted, 0 repaired\n")
		s.as(1).writtenBy(2)
	}

	s.warm(1)
	_, out = command("rebuild", "newly-unread", "--user", "1")
	expect(t, "one is rebuilt", out, "1 people, 1 copies dropped: each is made anew when it is read next\n")
	s.warm(1)
	_, out = command("rebuild", "newly-unread")
	expect(t, "all are rebuilt", out, "3 people, 1 copies dropped: each is made anew when it is read next\n")
	s.as(1).writtenBy(2)
}

// warm reads a person's icon until there is a copy of it.
func (s *server) warm(user id.User) {
	s.t.Helper()
	rdb := s.rdb(s.t)
	defer rdb.Close()
	within(s.t, soon, "there is a copy", func() bool {
		s.as(user).icon()
		state := rdb.ZRangeArgs(s.t.Context(), goredis.ZRangeArgs{Key: "newly_unread:{" + user.String() + "}", Start: 0, Stop: 0, Rev: true}).Val()
		return len(state) == 1 && strings.HasPrefix(state[0], "warm:")
	})
}
