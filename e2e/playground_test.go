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
	browser := os.Getenv("CHROMIUM")
	if browser == "" {
		var err error
		if browser, err = exec.LookPath("chromium"); err != nil {
			t.Fatalf("%v: run make setup, or set CHROMIUM to a browser", err)
		}
	}
	command := exec.CommandContext(ctx, "node", "browser.mjs", s.url+"/", browser)
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
