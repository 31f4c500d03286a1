package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// smallTrace writes a trace of some people in three channels, who also answer each other.
func smallTrace(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("seconds\tchannel\tsender\tlength\treply_to\tmentions\n")
	for i := range 200 {
		fmt.Fprintf(&text, "%d\t%d\t%d\t20\t%d\t%d\n", i, 1+i%3, 1+i*i%11, 12+i%5, 1+i%16)
	}
	path := filepath.Join(t.TempDir(), "trace.tsv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplay(t *testing.T) {
	t.Parallel()
	engines := newEngines(t)
	dir := filepath.Join(t.TempDir(), "data")
	settings := append(engines.settings(), "TIDEMARK_DATA_DIR="+dir)
	for _, into := range []string{"fresh", "current"} {
		code, stdout, stderr := run(t, settings, "replay", "--screens", "50", "--into", into, smallTrace(t))
		if code != 0 || !regexp.MustCompile(`^200 messages, 16 people, \d+ badges, 50 screens, 16 icons, 0 wrong\n$`).MatchString(stdout) {
			t.Errorf("into %s it ends with %d and prints %q\n%s", into, code, stdout, stderr)
		}
	}
	untouched(t, dir)
}

func TestReplayWithoutRedis(t *testing.T) {
	t.Parallel()
	engines := newEngines(t)
	engines.redis.Kill()
	settings, trace := engines.settings(), smallTrace(t)
	code, stdout, stderr := run(t, settings, "replay", trace)
	if code != 1 || stdout != "" || !strings.Contains(stderr, "redis: ") || !strings.Contains(stderr, "connection refused") {
		t.Errorf("it ends with %d and prints %q\n%s", code, stdout, stderr)
	}
	code, stdout, stderr = run(t, settings, "replay", "--screens", "0", trace)
	if code != 0 || !strings.HasSuffix(stdout, " badges, 0 screens, 16 icons, 0 wrong\n") {
		t.Errorf("with no screens it ends with %d and prints %q\n%s", code, stdout, stderr)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	for _, screens := range []string{"-1", "10001"} {
		code, _, stderr := run(t, nil, "replay", "--screens="+screens, smallTrace(t))
		if code == 0 || !strings.Contains(stderr, "--screens must be from 0 to 10000") {
			t.Errorf("%s screens: it ends with %d and says %s", screens, code, stderr)
		}
	}
}
