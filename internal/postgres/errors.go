package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/internal/fault"
)

// SQLSTATEs that say something about the moment, not about the statement.
const (
	classConnection  = "08"
	classResources   = "53"
	queryCanceled    = "57014"
	adminShutdown    = "57P01"
	crashShutdown    = "57P02"
	cannotConnectNow = "57P03"
	lockNotAvailable = "55P03"
	serialization    = "40001"
	deadlock         = "40P01"
	readOnly         = "25006"
	idleTransaction  = "25P03"
	uniqueViolation  = "23505"
	notNullViolation = "23502"
	// Classes of errors that the data of a row bring about.
	classData       = "22"
	classConstraint = "23"
	classRaised     = "P0"
)

// translate turns a driver's error into a fault where it says that Postgres is away or busy, and leaves any other as
// it is: that one is internal.
func translate(err error) error {
	var f *fault.Error
	switch {
	case err == nil, errors.As(err, &f), errors.Is(err, context.Canceled):
		return err
	case broke(err), errors.Is(err, context.DeadlineExceeded):
		return fault.NotAvailable(err)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case queryCanceled, lockNotAvailable, serialization, deadlock, readOnly, idleTransaction:
			return fault.NotAvailable(err)
		}
		if strings.HasPrefix(pg.Code, classResources) {
			return fault.NotAvailable(err)
		}
	}
	return err
}

// broke reports whether the connection broke, or none could be made.
func broke(err error) bool {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) { // whatever stopped it, such as a database that is just being replaced
		return true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case adminShutdown, crashShutdown, cannotConnectNow:
			return true
		}
		return strings.HasPrefix(pg.Code, classConnection)
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err)
}

// again runs a step, and once more where the connection broke under it: after a restart of Postgres all pooled
// connections are broken, so they are dropped first. Only for steps that may be done twice.
func again[T any](ctx context.Context, s *Store, step func() (T, error)) (T, error) {
	result, err := step()
	if err != nil && broke(err) && ctx.Err() == nil {
		s.pool.Reset()
		result, err = step()
	}
	return result, translate(err)
}

// violates reports whether err is a violation of the named constraint.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == uniqueViolation && pg.ConstraintName == constraint
}

// isReadOnly reports whether Postgres takes no writes for the moment.
func isReadOnly(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == readOnly
}

// noRows reports whether a statement that returns one row returned none.
func noRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
