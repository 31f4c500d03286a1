package e2e_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"tidemark/internal/person"
)

// TestPages has a browser go through the demo and the inspector of a fresh dev server, as people use them. Set
// TIDEMARK_PICTURES to a directory to have pictures of them left there, and of where it fails.
func TestPages(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir)
	args := []string{"pages.mjs", s.url, chromium(t), s.says(`Ben +\(2\) +(\S+)`)}
	if pictures := os.Getenv("TIDEMARK_PICTURES"); pictures != "" {
		args = append(args, pictures)
	}
	browser := runNode(t, "../web/test", args...)
	played := 0
	for _, line := range browser.ends() {
		var seen struct {
			Scenario, Problem string
			Saw               struct {
				Summary string
				Badges  int
			}
		}
		decode(t, line, &seen)
		played++
		if seen.Problem != "" {
			t.Errorf("%s: %s", seen.Scenario, seen.Problem)
		}
		if seen.Scenario != "inspector" {
			continue
		}
		expect(t, "badges that support sees, the muted one too", seen.Saw.Badges, 5)
		if !strings.HasPrefix(seen.Saw.Summary, "Your badge for general says ") {
			t.Errorf("support reads out %q", seen.Saw.Summary)
		}
	}
	expect(t, "scenarios", played, 15)
	s.stop()
}

// What the inspector shows is what the command prints, and what the person's own badge says.
func TestTheDemoIsExplainedAlike(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir)
	ada := s.ada()
	ada.markRead("101", 2)
	said := ada.explain("101", nil)
	said.adds(t, ada.badge("101"))
	code, out, _ := run(t, []string{"TIDEMARK_DATA_DIR=" + dir}, "explain", "--user", "1", "--channel", "101")
	expect(t, "the exit code", code, 0)
	expect(t, "whether the command says the same", strings.HasPrefix(out, said.Summary+"\n"), true)
	s.stop()
}

// Tokens are in the pages of a developer's machine alone.
func TestPagesInProduction(t *testing.T) {
	t.Parallel()
	s := serve(t)
	anybody := s.bearing("")
	expect(t, "the demo", anybody.get("/demo").status, http.StatusNotFound)
	page := anybody.get("/inspect")
	expect(t, "the inspector", page.status, http.StatusOK)
	expect(t, "whether it has a token", strings.Contains(page.body, "eyJ"), false)
	expect(t, "its policy", strings.Contains(page.header.Get("Content-Security-Policy"), "script-src 'self'"), true)
	expect(t, "whether it is kept", page.header.Get("Cache-Control"), "no-store")
	closed := serve(t, "TIDEMARK_INSPECTOR=false")
	expect(t, "one that is not wanted", closed.bearing("").get("/inspect").status, http.StatusNotFound)

	without := dev(t, dataDir(t), "TIDEMARK_DEMO=false")
	expect(t, "a demo without its data", without.bearing("").get("/demo").status, http.StatusNotFound)
	token := sign(t, person.Viewer{ID: 2, Role: person.RoleUser})
	s.bearing(token).refused("FORBIDDEN", `{ people(search: "a") { id } }`, nil)
	without.stop()
}
