package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/internal/embedded/engine"
)

// dataDir makes a directory that the engines' accounts can pass into, unlike t.TempDir's.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := engine.Account{}.TempDir("tidemark-e2e-")
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

// dev starts `tidemark dev` in a directory.
func dev(t *testing.T, dir string, settings ...string) *server {
	t.Helper()
	p := start(t, append([]string{"TIDEMARK_DATA_DIR=" + dir, "TIDEMARK_LISTEN=127.0.0.1:0"}, settings...), "dev")
	s := &server{process: p, url: p.says(`GraphQL +(http://[^/]+)/graphql`), http: newHTTPClient(t)}
	s.database = p.says(`psql '([^']+)'`)
	return s
}

// ada returns the client of the demo's first person, with the token that is printed.
func (s *server) ada() client {
	s.t.Helper()
	return s.bearing(s.says(`Ada +\(1\) +(\S+)`))
}

func TestDevFindsItsDataAgain(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := dev(t, dir)
	ada := first.ada()
	expect(t, "badges of the demo", len(ada.overview().Nodes), 5)
	expect(t, "the demo's total", ada.total().Unread.Count, 5)
	ada.markRead("101", 4)
	ada.remove("102", 1)
	ada.mute("103", false)
	want := contents(t, first.database)
	first.stop()

	second := dev(t, dir)
	unchanged(t, second.database, want)
	expect(t, "where Postgres is", second.database, first.database)
	expect(t, "the total", second.ada().total().Unread.Count, 3)
	second.kill()

	third := dev(t, dir)
	unchanged(t, third.database, want)
	expect(t, "a token of the first start", third.bearing(ada.token).total().Unread.Count, 3)
	third.ada().send("101", "And on it goes.")
	third.stop()
}

func TestDevMakesTheWholeDemo(t *testing.T) {
	t.Parallel()
	e, dir := newEngines(t), dataDir(t)
	release := hold(t, e.database, "LOCK TABLE message IN SHARE MODE")
	code, _, stderr := run(t, e.settings("TIDEMARK_DATA_DIR="+dir, "TIDEMARK_LOCK_TIMEOUT=100ms"), "dev")
	if code == 0 || !strings.Contains(stderr, "demo") {
		t.Errorf("a start that is cut off while it makes the demo ends with %d and says %s", code, stderr)
	}
	release()
	s := dev(t, dir, e.settings()...)
	expect(t, "the demo's total", s.ada().total().Unread.Count, 5)
	s.stop()
}

func TestDevWithoutDemo(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir, "TIDEMARK_DEMO=false")
	code, token, _ := run(t, []string{"TIDEMARK_DATA_DIR=" + dir}, "token", "--user", "1")
	expect(t, "the exit code of token", code, 0)
	ada := s.bearing(strings.TrimSpace(token))
	expect(t, "badges", len(ada.overview().Nodes), 0)
	page := ada.get("/")
	expect(t, "the playground", page.status, http.StatusOK)
	expect(t, "introspection", ada.do(`{ __schema { queryType { name } } }`, nil).code(), "")

	// Another process in the same directory uses the same engines, and leaves them running.
	other := dev(t, dir, "TIDEMARK_DEMO=false")
	channel := other.bearing(ada.token).create("GROUP", "ours", 2)
	other.stop()
	expect(t, "messages", ada.sends(channel, 1), 1)
	s.stop()
}

func TestServeIsClosed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	expect(t, "the playground", s.as(1).get("/").status, http.StatusNotFound)
	s.as(1).refused("GRAPHQL_VALIDATION_FAILED", `{ __schema { queryType { name } } }`, nil)
	expect(t, "metrics", strings.Contains(s.as(1).get("/metrics").body, "tidemark_"), true)
}

func TestDevIsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "127.0.0.1"} {
		code, _, stderr := run(t, []string{"TIDEMARK_DATA_DIR=" + dir}, "dev", "--listen", address)
		expect(t, "the exit code for "+address, code, 1)
		if !strings.Contains(stderr, "--listen") {
			t.Errorf("for %s it says %s", address, stderr)
		}
	}
	untouched(t, dir)
}
