package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tidemark/internal/embedded"
	"tidemark/migrations"
)

// schemaTimeout bounds a command's look at the schema.
const schemaTimeout = 10 * time.Second

// unused stands for the URL of a Redis that a command does not need.
const unused = "unused:"

var (
	errNoDatabase = errors.New("no database: set DATABASE_URL, or --data-dir where tidemark dev runs")
	errOldSchema  = errors.New("the database's schema is older than this program: run tidemark migrate first")
)

// postgres returns the Postgres to work on, and how to let it go. Engines are opened only where no URL is given.
func (d localDatabase) postgres(ctx context.Context) (url string, release func() error, err error) {
	if d.DatabaseURL != "" {
		return d.DatabaseURL, func() error { return nil }, nil
	}
	engines, err := embedded.Open(ctx, embedded.Config{DataDir: d.DataDir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	return engines.PostgresURL(), engines.Close, nil
}

// existing returns the Postgres that holds data, for commands that have nothing to do with an empty one: none is started.
func (d localDatabase) existing(ctx context.Context) (url string, err error) {
	// A Redis that is named is not looked for.
	url, _, err = localPlace{d.dataDir, place{d.database, unused}}.existing(ctx)
	return url, err
}

// existing returns the Postgres that holds data, as it does for a database, and the Redis beside it. That is empty where
// the one is named and the other is not.
func (p localPlace) existing(ctx context.Context) (databaseURL, redisURL string, err error) {
	if p.DatabaseURL != "" {
		return p.DatabaseURL, p.RedisURL, current(ctx, p.DatabaseURL)
	}
	engines, err := embedded.Running(embedded.Config{
		DataDir: p.DataDir, RedisURL: p.RedisURL, Logger: slog.New(slog.DiscardHandler),
	})
	if errors.Is(err, embedded.ErrNotRunning) {
		return "", "", errNoDatabase
	}
	if err != nil {
		return "", "", err
	}
	return engines.PostgresURL(), engines.RedisURL(), current(ctx, engines.PostgresURL())
}

// checkSchema refuses to run on a schema that is older than the program. Where Postgres is away, it is not known, and the
// process waits for it as it would later.
func (c *processConfig) checkSchema(ctx context.Context, log *slog.Logger) error {
	err := current(ctx, c.DatabaseURL)
	if err != nil && !errors.Is(err, errOldSchema) {
		log.Warn("the schema could not be looked at", "error", err)
		return nil
	}
	return err
}

// current fails where the database lacks some of the schema.
func current(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	pending, err := migrations.Pending(ctx, url)
	if err != nil {
		return err
	}
	if pending {
		return errOldSchema
	}
	return nil
}

// closing lets go of what a command opened, and reports that it could not where nothing else went wrong.
func closing(release func() error, err *error) {
	if closeErr := release(); *err == nil {
		*err = closeErr
	}
}
