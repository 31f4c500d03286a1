package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadmeDoesWhatItSays runs, in order, each example of README.md that is followed by its output.
func TestReadmeDoesWhatItSays(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := dev(t, dir)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	repository := t.TempDir()
	if err := os.Mkdir(filepath.Join(repository, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(repository, "bin", "tidemark")); err != nil {
		t.Fatal(err)
	}

	blocks := regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(read(t, "../README.md"), -1)
	examples := 0
	for i, block := range blocks {
		if block[1] != "json" || i == 0 || blocks[i-1][1] != "sh" {
			continue
		}
		examples++
		script := strings.ReplaceAll(blocks[i-1][2], "http://127.0.0.1:8080", s.url)
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		command.Dir = repository
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "TIDEMARK_DATA_DIR=" + dir}
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		var got, want any
		decode(t, string(out), &got)
		decode(t, block[2], &want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\nprints something else than README.md says (-says +prints):\n%s", script, diff)
		}
	}
	if examples == 0 {
		t.Error("README.md has no examples")
	}
	s.stop()
}

func TestReadmeNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	readme, makefile := read(t, "../README.md"), read(t, "../Makefile")
	var targets []string
	for _, made := range regexp.MustCompile(`(?m)^make (\w+)$`).FindAllStringSubmatch(readme, -1) {
		targets = append(targets, made[1])
		if !regexp.MustCompile(`(?m)^` + made[1] + `:`).MatchString(makefile) {
			t.Errorf("the Makefile has no target %s", made[1])
		}
	}
	if !slices.Contains(targets, "run") {
		t.Error("README.md does not say how to run it")
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`)[^|]* \\|").FindAllStringSubmatch(readme, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			if _, err := os.Stat(filepath.Join("..", name[1])); err != nil {
				t.Errorf("the map has %v", err)
			}
		}
	}
}

func TestLinksOfTheDocumentsLead(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/adr/*.md"} {
		documents, err := filepath.Glob(pattern)
		if err != nil || len(documents) == 0 {
			t.Errorf("%s: %d documents, %v", pattern, len(documents), err)
		}
		for _, document := range documents {
			for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, document), -1) {
				target, _, _ := strings.Cut(link[1], "#")
				if target == "" || strings.Contains(target, "://") {
					continue
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(document), target)); err != nil {
					t.Errorf("%s leads nowhere: %v", document, err)
				}
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
