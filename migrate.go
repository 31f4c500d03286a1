package main

import (
	"context"
	"fmt"
	"log/slog"

	"tidemark/internal/embedded"
	"tidemark/migrations"
)

type migrateCommand struct {
	place `embed:""`
}

// Run migrates.
func (c *migrateCommand) Run(ctx context.Context) (err error) {
	engines, err := c.engines(ctx, slog.Default())
	if err != nil {
		return err
	}
	defer closing(engines, &err)
	if err := migrations.Up(ctx, engines.PostgresURL()); err != nil {
		return err
	}
	fmt.Println("the schema is the newest")
	return nil
}

// engines returns the engines that the place names. Close them.
func (p place) engines(ctx context.Context, log *slog.Logger) (*embedded.Engines, error) {
	return embedded.Open(ctx, embedded.Config{
		DataDir: p.DataDir, PostgresURL: p.DatabaseURL, RedisURL: p.RedisURL, Logger: log,
	})
}

// closing closes what a command opened, and reports that it could not where nothing else went wrong.
func closing(c interface{ Close() error }, err *error) {
	if closeErr := c.Close(); *err == nil {
		*err = closeErr
	}
}
