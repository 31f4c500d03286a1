package e2e_test

import (
	"strings"
	"testing"
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
	expect(t, "what it prints", out, "3 people, 0 badges drifted\n")
	code, _ = verify("--sample", "5")
	expect(t, "the exit code of a sample", code, 0)

	conn := connect(t, s.database)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE channel_head SET last_deleted_seq = 0`); err != nil {
		t.Fatal(err)
	}
	code, out = verify()
	expect(t, "the exit code with drift", code, 1)
	if !strings.Contains(out, "person 1 in channel "+channel) || !strings.Contains(out, "unread 5, counted 4") {
		t.Errorf("it prints\n%s", out)
	}
}
