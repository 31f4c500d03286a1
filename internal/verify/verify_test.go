package verify_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/verify"
)

// Each projection is held against the truth, and one that drifted is told of and, in a repair, dropped: no other is.
func TestProjectionsAreVerified(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	kept := &projections{kept: map[id.User]int{anna: 2, ben: 3}, truth: map[id.User]int{anna: 2, ben: 2, cleo: 1}}
	var progress bytes.Buffer
	run := func(config verify.Config) verify.Report {
		t.Helper()
		config.Store, config.Projections, config.Progress = store, kept, &progress
		report, err := verify.Run(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	const found = "person 2, newly unread: projected 3 people, counted 2 people"
	report := run(verify.Config{})
	if report.Drifted != 1 || !slices.Equal(report.Lines, []string{found}) || len(kept.dropped) > 0 {
		t.Errorf("it finds %v\n%v", report, report.Lines)
	}
	report = run(verify.Config{Repair: true})
	if want := "3 people in 1 channels, 1 drifted, 1 repaired"; report.String() != want {
		t.Errorf("got %v, want %s", report, want)
	}
	want := []string{found, "repaired person 2, newly unread: dropped, and counted at the next read"}
	if !slices.Equal(report.Lines, want) || len(kept.dropped) != 1 || !slices.Equal(kept.dropped[0], []id.User{ben}) {
		t.Errorf("it tells %v, and drops those of %v", report.Lines, kept.dropped)
	}
	if report := run(verify.Config{Repair: true}); report.Drifted > 0 || report.Repaired > 0 {
		t.Errorf("after a repair it finds %v\n%v", report, report.Lines)
	}
	const bar = "verify [##############################] 100%  3 of 3"
	if lines := progress.String(); strings.Count(lines, bar) != 3 {
		t.Errorf("the progress shown is %q", lines)
	}
}

func TestAVerificationThatFails(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	for _, sample := range []int{-1, verify.MaxSample + 1} {
		if _, err := verify.Run(t.Context(), verify.Config{Store: store, Sample: sample}); err == nil {
			t.Errorf("a sample of %d is taken", sample)
		}
	}
	_, err := verify.Run(t.Context(), verify.Config{Store: store, Projections: &projections{err: errAway}})
	if !errors.Is(err, errAway) {
		t.Errorf("projections that cannot be read: %v", err)
	}
	store.Close()
	if _, err := verify.Run(t.Context(), verify.Config{Store: store}); err == nil {
		t.Error("a store that cannot be read is right")
	}
}

func TestRebuild(t *testing.T) {
	t.Parallel()
	store, conn := newStore(t)
	exec(t, conn, "INSERT INTO users (id) SELECT generate_series(100, 219)")
	kept := &projections{kept: map[id.User]int{anna: 1, ben: 2, cleo: 3, 150: 4, 219: 5}}
	var progress bytes.Buffer
	config := verify.RebuildConfig{People: store, Projections: kept, User: ben, Progress: &progress}
	done, err := verify.Rebuild(t.Context(), config)
	if err != nil || done != (verify.Rebuilt{People: 1, Dropped: 1}) || len(kept.kept) != 4 {
		t.Errorf("of one: %v, %v; left are %v", done, err, kept.kept)
	}
	config.User = 0
	done, err = verify.Rebuild(t.Context(), config)
	if want := "123 people, 4 copies dropped: each is made anew when it is read next"; err != nil || done.String() != want {
		t.Errorf("of all: %v, %v", done, err)
	}
	if len(kept.kept) > 0 {
		t.Errorf("left are %v", kept.kept)
	}
	for _, batch := range kept.dropped {
		if len(batch) > 50 {
			t.Errorf("%d are dropped at once", len(batch))
		}
	}
	if want := "rebuild [##############################] 100%  123 of 123"; !strings.Contains(progress.String(), want) {
		t.Errorf("the progress shown is %q", progress.String())
	}
	kept.err = errAway
	for _, user := range []id.User{0, ben} {
		config.User = user
		if _, err := verify.Rebuild(t.Context(), config); !errors.Is(err, errAway) {
			t.Errorf("projections that cannot be dropped: %v", err)
		}
	}
}
