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

// Keep is as presence.Store has it.
func (p *Presence) Keep(ctx context.Context, process string, users []id.User, expiry time.Duration) error {
	if err := p.write(ctx, process, users, expiry); err != nil {
		return fmt.Errorf("note %d people as connected: %w", len(users), err)
	}
	return nil
}

// Leave is as presence.Store has it.
func (p *Presence) Leave(ctx context.Context, process string, users []id.User) error {
	if err := p.write(ctx, process, users, 0); err != nil {
		return fmt.Errorf("note %d people as no longer connected: %w", len(users), err)
	}
	return nil
}

// write runs the script for all of the users. A server that has lost it is given it again.
func (p *Presence) write(ctx context.Context, process string, users []id.User, length time.Duration) error {
	run := func() error {
		_, err := p.rdb.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
			for _, user := range users {
				p.note.EvalSha(ctx, pipe, []string{presenceKey(user)}, process, length.Milliseconds())
			}
			return nil
		})
		return err
	}
	err := run()
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		if err = p.note.Load(ctx, p.rdb).Err(); err == nil {
			err = run()
		}
	}
	return err
}

// Online is as presence.Store has it.
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
