// Command tidemark keeps the numbers on a messaging app right: channel badges, and the catch-up of devices.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type commands struct {
	Dev     devCommand     `cmd:"" set:"without=Left out, the one that runs in the data directory, or one that is started there." set:"listen=127.0.0.1:8080" set:"open=true" set:"log=text" set:"rate=1000" set:"burst=10000" help:"Run with embedded engines, demo data and a playground, on this machine only."`
	Serve   serveCommand   `cmd:"" set:"without=It must be given." set:"listen=:8080" set:"open=false" set:"log=json" set:"rate=100" set:"burst=1000" help:"Run in production."`
	Work    workCommand    `cmd:"" set:"without=It must be given." set:"listen=127.0.0.1:8081" set:"log=json" help:"Do the work between a message and newly unread, and serve nothing but /healthz, /readyz and /metrics."`
	Migrate migrateCommand `cmd:"" set:"without=Left out, the one that runs in the data directory, or one that is started there." help:"Bring the database to the newest schema. Safe when several do it at once."`
	Token   tokenCommand   `cmd:"" help:"Print a token for somebody."`
	Replay  replayCommand  `cmd:"" set:"without=Left out, the one that runs in the data directory, or one that is started there." help:"Replay a trace of real chat traffic, and check every badge and every open screen."`
	Verify  verifyCommand  `cmd:"" set:"without=Left out, the one that runs in the data directory." help:"Recount badges message by message, print those that drifted, and repair them."`
	Rebuild rebuildCommand `cmd:"" help:"Make anew what Redis holds copies of."`
	Explain explainCommand `cmd:"" set:"without=Left out, the one that runs in the data directory." help:"Tell what somebody's badge is made of, and what moved it last."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var cli commands
	parser := kong.Must(&cli,
		kong.Name("tidemark"),
		kong.Description("Right badges for messaging apps: a GraphQL API over Postgres and Redis."),
		kong.DefaultEnvars("TIDEMARK"),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.ShortUsageOnError(),
	)
	command, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "tidemark:", err)
		stop()
		code := 1
		var coder kong.ExitCoder
		if errors.As(err, &coder) {
			code = coder.ExitCode()
		}
		os.Exit(code) //nolint:gocritic // stop has been called
	}
}
