package postgres

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes an empty database on the server at rawURL, beside the one that the URL names, and returns its URL
// and how to drop it with all that is in it.
func CreateDatabase(ctx context.Context, rawURL, name string) (made string, drop func(context.Context) error, err error) {
	location, err := url.Parse(rawURL)
	if err != nil || location.Scheme == "" {
		return "", nil, fmt.Errorf("create database: the URL must begin with postgres://")
	}
	quoted := pgx.Identifier{name}.Sanitize()
	if err := onServer(ctx, rawURL, "CREATE DATABASE "+quoted); err != nil {
		return "", nil, fmt.Errorf("create database: %w", err)
	}
	location.Path = "/" + name
	drop = func(ctx context.Context) error {
		if err := onServer(ctx, rawURL, "DROP DATABASE "+quoted+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop database: %w", err)
		}
		return nil
	}
	return location.String(), drop, nil
}

// onServer runs what no transaction and no prepared statement can.
func onServer(ctx context.Context, rawURL, command string) error {
	conn, err := pgx.Connect(ctx, rawURL)
	if err != nil {
		return translate(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, command)
	return translate(err)
}

// LargestID returns the largest id of anybody and any channel, and 0 where there is none.
func (s *Store) LargestID(ctx context.Context) (int64, error) {
	return again(ctx, s, func() (int64, error) { return s.q.GetLargestID(ctx, s.pool) })
}
