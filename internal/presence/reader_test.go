package presence_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/presence"
	"tidemark/internal/redis"
	"tidemark/internal/redis/redistest"
)

// While Redis is away nobody is known to be connected, and hardly anybody waits to hear so.
func TestWhoIsConnectedIsUnknown(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Start},
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.New(t)
			store, log := redis.NewPresence(open(t, server)), &journal{}
			reader := presence.NewReader(store, slog.New(slog.NewTextHandler(log, nil)))
			ask := func() []id.User { return reader.Online(t.Context(), []id.User{anna, ben, cleo}) }
			note := func() {
				t.Helper()
				if err := store.Keep(t.Context(), "a process", []id.User{ben, cleo}, time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			note()
			if got := ask(); !slices.Equal(got, []id.User{ben, cleo}) {
				t.Errorf("connected are %v", got)
			}
			if n := reader.Unknown(); n != 0 {
				t.Errorf("%d questions stayed without an answer", n)
			}
			outage.begin(server)
			began := time.Now()
			for range 100 {
				if got := ask(); len(got) != 0 {
					t.Fatalf("connected are %v", got)
				}
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("100 questions took %v", took)
			}
			if n := reader.Unknown(); n != 100 {
				t.Errorf("%d questions stayed without an answer", n)
			}
			outage.end(server)
			eventually(t, "it can be noted again", func() bool {
				return store.Keep(t.Context(), "a process", []id.User{ben, cleo}, time.Minute) == nil
			})
			eventually(t, "it is known again", func() bool { return slices.Equal(ask(), []id.User{ben, cleo}) })
			if warned, relieved := log.count("WARN"), log.count("known again"); warned != 1 || relieved != 1 {
				t.Errorf("%d warnings, %d that it is over", warned, relieved)
			}
		})
	}
}

// Whoever asks and is gone says nothing about Redis.
func TestAnAskerWhoIsGone(t *testing.T) {
	t.Parallel()
	store := redis.NewPresence(open(t, redistest.New(t)))
	reader := presence.NewReader(store, slog.New(slog.DiscardHandler))
	if err := store.Keep(t.Context(), "a process", []id.User{anna}, time.Minute); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := reader.Online(gone, []id.User{anna}); len(got) != 0 {
		t.Errorf("connected are %v", got)
	}
	if got := reader.Online(t.Context(), []id.User{anna}); !slices.Equal(got, []id.User{anna}) {
		t.Errorf("connected are %v", got)
	}
}
