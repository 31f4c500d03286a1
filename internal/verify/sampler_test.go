package verify_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/verify"
)

// written is a log that is read while it is written.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// has counts the lines that have something in them.
func (w *written) has(text string) (lines int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.text.String()) {
		if strings.Contains(line, text) {
			lines++
		}
	}
	return lines
}

// sample runs a sampler until the end of the test.
func sample(t *testing.T, config verify.SamplerConfig) (*verify.Sampler, *written) {
	t.Helper()
	var log written
	config.Every, config.Logger = 10*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
	sampler := verify.NewSampler(config)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		sampler.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return sampler, &log
}

// What is wrong is counted each time that it is found, and logged once; what is right is neither.
func TestASamplerTellsWhatItFinds(t *testing.T) {
	t.Parallel()
	store, conn := newStore(t)
	kept := &projections{kept: map[id.User]int{ben: 2}, truth: map[id.User]int{ben: 2}}
	sampler, log := sample(t, verify.SamplerConfig{Store: store, Projections: kept})
	eventually(t, "people are verified", func() bool { return sampler.Stats().People > 10 })
	if stats := sampler.Stats(); stats.Badges != 0 || stats.NewlyUnread != 0 || stats.Skipped != 0 || log.has("drift") != 0 {
		t.Errorf("it finds %+v", stats)
	}
	exec(t, conn, "UPDATE channel_head SET last_deleted_seq = 0")
	kept.mu.Lock()
	kept.kept[ben] = 4
	kept.mu.Unlock()
	eventually(t, "it is found over and over", func() bool {
		stats := sampler.Stats()
		return stats.Badges > 10 && stats.NewlyUnread > 5
	})
	for _, line := range []string{
		"level=ERROR msg=\"a badge is not what the messages say\" drift=\"person 2 in channel",
		"level=ERROR msg=\"a badge is not what the messages say\" drift=\"person 3 in channel",
		"level=ERROR msg=\"newly unread is not what Postgres says\" drift=\"person 2, newly unread: projected 4 people, counted 2 people",
	} {
		if n := log.has(line); n != 1 {
			t.Errorf("%d lines say %s", n, line)
		}
	}
}

// Who takes too long is left out, and the sampler goes on.
func TestASamplerWaitsForNobody(t *testing.T) {
	t.Parallel()
	store, conn := newStore(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE message IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	sampler, _ := sample(t, verify.SamplerConfig{Store: store, Sample: 1})
	eventually(t, "somebody is skipped", func() bool { return sampler.Stats().Skipped > 0 })
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "others are verified", func() bool { return sampler.Stats().People > 0 })
}

// While Postgres is away, that is said once.
func TestASamplerOutlivesItsStore(t *testing.T) {
	t.Parallel()
	store, conn := newStore(t)
	exec(t, conn, "ALTER TABLE users RENAME TO people")
	sampler, log := sample(t, verify.SamplerConfig{Store: store})
	eventually(t, "it is said", func() bool { return log.has("nobody can be verified for now") > 0 })
	exec(t, conn, "ALTER TABLE people RENAME TO users")
	eventually(t, "people are verified", func() bool { return sampler.Stats().People > 0 })
	if n := log.has("nobody can be verified for now"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}
