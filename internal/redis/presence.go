package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
	"tidemark/internal/presence"
)

//go:embed presence.lua
var presenceScript string

var _ presence.Store = (*Presence)(nil)

// Presence keeps which process serves whom, by the clock of Redis.
type Presence struct {
	rdb  *goredis.Client
	note *goredis.Script
}

// NewPresence returns the presence that is kept behind c.
func NewPresence(c *Client) *Presence {
	return &Presence{rdb: c.rdb, note: goredis.NewScript(presenceScript)}
}

// Keep implements presence.Store.
func (p *Presence) Keep(ctx context.Context, process string, users []id.User, expiry time.Duration) error {
	return p.write(ctx, fmt.Sprintf("note %d people as connected", len(users)), process, users, expiry)
}

// Leave implements presence.Store.
func (p *Presence) Leave(ctx context.Context, process string, users []id.User) error {
	return p.write(ctx, fmt.Sprintf("note %d people as no longer connected", len(users)), process, users, 0)
}

func (p *Presence) write(ctx context.Context, what, process string, users []id.User, length time.Duration) error {
	return runEach(ctx, p.rdb, what, p.note, func(run func(key string, args ...any)) {
		for _, user := range users {
			run(presenceKey(user), process, length.Milliseconds())
		}
	})
}

// Online implements presence.Store.
func (p *Presence) Online(ctx context.Context, users []id.User) ([]id.User, error) {
	there := make([]*goredis.IntCmd, len(users))
	_, err := p.rdb.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for i, user := range users {
			there[i] = pipe.Exists(ctx, presenceKey(user))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the presence of %d people: %w", len(users), err)
	}
	var online []id.User
	for i, user := range users {
		if there[i].Val() > 0 {
			online = append(online, user)
		}
	}
	return online, nil
}

func presenceKey(user id.User) string { return "presence:{" + user.String() + "}" }
