package main

import (
	"context"
	"fmt"
	"log/slog"

	"tidemark/internal/embedded"
	"tidemark/migrations"
)

type migrateCommand struct {
	database `embed:""`
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

// postgres returns the Postgres to work on, and how to let it go. Engines are opened only where no URL is given.
func (d database) postgres(ctx context.Context) (url string, release func() error, err error) {
	if d.DatabaseURL != "" {
		return d.DatabaseURL, func() error { return nil }, nil
	}
	engines, err := embedded.Open(ctx, embedded.Config{DataDir: d.DataDir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	return engines.PostgresURL(), engines.Close, nil
}

// closing lets go of what a command opened, and reports that it could not where nothing else went wrong.
func closing(release func() error, err *error) {
	if closeErr := release(); *err == nil {
		*err = closeErr
	}
}
