// Package migrations holds the schema of Tidemark's database, in the order in which it grew, and applies it.
package migrations

import (
	"context"
	"embed"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// Up brings the database at url to the newest schema. Several processes may call it at once: a lock in the
// database lets one of them work while the others wait, and then find nothing left to do.
func Up(ctx context.Context, url string) error {
	return withProvider(url, func(provider *goose.Provider) error {
		_, err := provider.Up(ctx)
		return err
	})
}

// Pending reports whether the database at url lacks some of the schema.
func Pending(ctx context.Context, url string) (pending bool, err error) {
	err = withProvider(url, func(provider *goose.Provider) error {
		pending, err = provider.HasPending(ctx)
		return err
	})
	return pending, err
}

func withProvider(url string, use func(*goose.Provider) error) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()

	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if err := use(provider); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return nil
}
