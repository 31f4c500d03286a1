package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestPlaygroundRunsBadges opens the playground of a fresh dev server in a browser, and runs the first example with
// the token that it finds there.
func TestPlaygroundRunsBadges(t *testing.T) {
	t.Parallel()
	s := dev(t, dataDir(t))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "node", "browser.mjs", s.url+"/", chromium(t))
	command.Dir = "../playground/assets-src"
	command.WaitDelay = 5 * time.Second
	out, err := command.Output()
	if err != nil {
		t.Fatalf("browser.mjs: %v\n%s", err, out)
	}
	var saw struct {
		Complaints, External []string
		Answer               string
	}
	decode(t, string(out), &saw)
	if len(saw.Complaints) > 0 || len(saw.External) > 0 {
		t.Errorf("the browser complained %q and left this machine for %q", saw.Complaints, saw.External)
	}
	var answer struct{ Data struct{ Badges badgePage } }
	decode(t, saw.Answer, &answer)
	expect(t, "channels, the muted one too", len(answer.Data.Badges.Nodes), 5)
	expect(t, "the total", answer.Data.Badges.Total.Unread.Label, "5")
	s.stop()
}

// TestPlaygroundShowsALiveBadge follows the badges of the demo's first person in a browser while the second writes.
func TestPlaygroundShowsALiveBadge(t *testing.T) {
	t.Parallel()
	s := dev(t, dataDir(t))
	browser := runNode(t, "../playground/assets-src", "live.mjs", s.url+"/", chromium(t))
	shown := func() change {
		t.Helper()
		var line struct{ Shows string }
		decode(t, browser.line(), &line)
		var result struct{ Data struct{ BadgeChanged change } }
		decode(t, line.Shows, &result)
		return result.Data.BadgeChanged
	}
	first := shown()
	expect(t, "whether it begins with a snapshot", first.Snapshot, true)
	expect(t, "badges, but for the muted one", len(first.Badges), 4)
	expect(t, "the total", first.Total.Unread.Label, "5")
	expect(t, "what is unread", find(t, badgePage{Nodes: first.Badges}, "104").Unread.Label, "0")

	s.ben().send("104", "Are you looking?", 1)
	second := shown()
	expect(t, "badges that changed", len(second.Badges), 1)
	b := find(t, badgePage{Nodes: second.Badges}, "104")
	expect(t, "what is unread", b.Unread.Label, "1")
	expect(t, "mentions", b.Mentions.Label, "1")
	expect(t, "the total", second.Total.Unread.Label, "6")

	var saw struct{ Complaints, External []string }
	for _, line := range browser.ends() {
		decode(t, line, &saw)
	}
	if len(saw.Complaints) > 0 || len(saw.External) > 0 {
		t.Errorf("the browser complained %q and left this machine for %q", saw.Complaints, saw.External)
	}
	s.stop()
}

// change is what a subscription tells of badges.
type change struct {
	Snapshot bool
	Badges   []badge
	Total    total
}

// ben returns the client of the demo's second person, with the token that is printed.
func (s *server) ben() client {
	s.t.Helper()
	return s.bearing(s.says(`Ben +\(2\) +(\S+)`))
}

// chromium returns the path of a browser.
func chromium(t *testing.T) string {
	t.Helper()
	if browser := os.Getenv("CHROMIUM"); browser != "" {
		return browser
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: run make setup, or set CHROMIUM to a browser", err)
	}
	return browser
}
