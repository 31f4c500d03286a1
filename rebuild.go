package main

import (
	"context"
	"errors"
	"fmt"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
	"tidemark/internal/redis"
	"tidemark/internal/verify"
)

type rebuildCommand struct {
	NewlyUnread rebuildNewlyUnread `cmd:"" set:"without=Left out, the one that runs in the data directory." help:"Drop what Redis holds of who is newly unread, so that it is counted anew."`
}

type rebuildNewlyUnread struct {
	localPlace `embed:""`

	User  int64 `placeholder:"N" default:"0" help:"Whose. 0: everybody's."`
	Quiet bool  `help:"Show no progress."`
}

// Validate names the flag that is not what it may be.
func (c *rebuildNewlyUnread) Validate() error {
	if c.User < 0 {
		return errors.New("--user must be a person's id")
	}
	if c.DatabaseURL != "" && c.RedisURL == "" {
		return errors.New("--redis-url must be given where --database-url is: that is where the copies are")
	}
	return nil
}

// Help is printed by --help.
func (*rebuildNewlyUnread) Help() string {
	return "May run beside the servers: what is not there is counted in Postgres, and kept, when it is read next."
}

// Run drops the copies, and says how many.
func (c *rebuildNewlyUnread) Run(ctx context.Context) (err error) {
	url, redisURL, err := c.existing(ctx)
	if err != nil {
		return err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConnections: 1})
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := redis.Open(redisURL)
	if err != nil {
		return err
	}
	defer closing(client.Close, &err)
	rebuilt, err := verify.Rebuild(ctx, verify.RebuildConfig{
		People: store, Projections: newlyunread.Audit{Store: store, Projection: redis.NewNewlyUnread(client)},
		User: id.User(c.User), Progress: progressTo(c.Quiet),
	})
	if err != nil {
		return err
	}
	fmt.Println(rebuilt)
	return nil
}
