// Command withpostgres runs a command against a Postgres of its own, which has the newest schema and is thrown away
// afterwards. The command finds it in DATABASE_URL.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"tidemark/internal/embedded/engine"
	"tidemark/migrations"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("no command to run")
	}
	account, err := engine.AccountFor("postgres", "nobody")
	if err != nil {
		return err
	}
	found, err := engine.Machine{}.FindPostgres(ctx, account)
	if err != nil {
		return err
	}
	dir, err := account.TempDir("tidemark-withpostgres-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	postgres := engine.Postgres{
		Installation: found[0],
		Dir:          filepath.Join(dir, "data"),
		Log:          filepath.Join(dir, "log"),
		Account:      account,
		Volatile:     true,
	}
	if err := postgres.Init(ctx); err != nil {
		return err
	}
	process, err := postgres.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	url := postgres.URL(engine.Database)
	if err := migrations.Up(ctx, url); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
