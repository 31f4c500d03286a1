package presence

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"tidemark/internal/breaker"
	"tidemark/internal/id"
)

const (
	// readTimeout is what a question may lose on a store that does not answer. Nobody waits for it who looks at a screen,
	// and a machine that does much else is to get the answer.
	readTimeout = 500 * time.Millisecond
	// readPause is how long a store that failed is left alone. After it one question tries, for all.
	readPause = time.Second
)

// Reader answers who is connected, for those who can go on without an answer. It is safe for concurrent use.
type Reader struct {
	store  Store
	logger *slog.Logger

	breaker *breaker.Breaker
	unknown atomic.Int64
}

// NewReader returns who reads from store. A nil logger means slog.Default.
func NewReader(store Store, logger *slog.Logger) *Reader {
	return &Reader{store: store, logger: cmp.Or(logger, slog.Default()), breaker: breaker.New(readPause)}
}

// Online returns those of the users who are known to be connected. While the store is away or slow that is nobody.
func (r *Reader) Online(ctx context.Context, users []id.User) []id.User {
	if len(users) == 0 {
		return nil
	}
	if r.breaker.Allow() {
		online, err := r.ask(ctx, users)
		if err == nil {
			return online
		}
	}
	r.unknown.Add(1)
	return nil
}

// Unknown is how many questions stayed without an answer.
func (r *Reader) Unknown() int64 { return r.unknown.Load() }

// ask asks the store, and remembers whether it works.
func (r *Reader) ask(ctx context.Context, users []id.User) ([]id.User, error) {
	asking, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	online, err := r.store.Online(asking, users)
	r.breaker.Heard(ctx, err, r.logger, "who is connected is not known, and everybody counts as away", "who is connected is known again")
	return online, err
}
