package main

import (
	"context"
	"fmt"

	"tidemark/migrations"
)

type migrateCommand struct {
	localDatabase `embed:""`
}

// Run migrates.
func (c *migrateCommand) Run(ctx context.Context) (err error) {
	url, release, err := c.postgres(ctx)
	if err != nil {
		return err
	}
	defer closing(release, &err)
	if err := migrations.Up(ctx, url); err != nil {
		return err
	}
	fmt.Printf("%s has the newest schema\n", redacted(url))
	return nil
}
