package main

import (
	"context"
	"errors"
	"log/slog"
)

type serveCommand struct {
	config `embed:""`
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context) error {
	if err := c.missing(); err != nil {
		return err
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	if err := c.checkSchema(ctx, log); err != nil {
		return err
	}
	listener, err := c.listener(ctx)
	if err != nil {
		return err
	}
	server, err := newServer(ctx, c.config, c.trusted(log), log)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "version", version())
	return server.run(ctx, listener)
}

// checkSchema refuses to serve from a schema that is older than the program. Where Postgres is away, it is not known,
// and the server waits for it as it would later.
func (c *serveCommand) checkSchema(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, c.RequestTimeout)
	defer cancel()
	err := current(ctx, c.DatabaseURL)
	if err != nil && !errors.Is(err, errOldSchema) {
		log.Warn("the schema could not be looked at", "error", err)
		return nil
	}
	return err
}
