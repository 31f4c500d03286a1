package copies_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/redis"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// newlyUnreadCheck asks a replica of the lab's Redis.
func newlyUnreadCheck(l *lab, replica string) *redis.NewlyUnreadCheck {
	return redis.NewNewlyUnreadCheck(client(l.t, l.redis.URL()), client(l.t, replica))
}

// memory returns how much Redis uses and some more, as it takes it.
func memory(t *testing.T, l *lab) func(more int) string {
	t.Helper()
	for line := range strings.Lines(l.raw.Info(t.Context(), "memory").Val()) {
		if used, found := strings.CutPrefix(line, "used_memory:"); found {
			n, err := strconv.Atoi(strings.TrimSpace(used))
			if err != nil {
				t.Fatal(err)
			}
			return func(more int) string { return fmt.Sprint(n + more) }
		}
	}
	t.Fatal("Redis does not say what it uses")
	return nil
}

// settleNow waits until the outbox is empty, so that who writes next is newer.
func (l *lab) settleNow() {
	l.t.Helper()
	eventually(l.t, "the outbox is empty", func() bool {
		var done bool
		if err := l.sql.QueryRow(l.t.Context(), "SELECT NOT EXISTS (SELECT FROM outbox)").Scan(&done); err != nil {
			l.t.Fatal(err)
		}
		return done
	})
}

// warmAny reads until a copy has answered.
func (l *lab) warmAny(icons *newlyunread.NewlyUnread, who id.User) (shown newlyunread.Shown) {
	l.t.Helper()
	eventually(l.t, "there is a copy", func() bool {
		before := icons.Stats().Warm
		var err error
		if shown, err = icons.Get(l.t.Context(), who, 10); err != nil {
			l.t.Fatal(err)
		}
		return icons.Stats().Warm > before
	})
	return shown
}
