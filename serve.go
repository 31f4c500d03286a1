package main

import "context"

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
