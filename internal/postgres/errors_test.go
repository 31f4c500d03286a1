package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"tidemark/internal/fault"
)

func TestOnlyThePartThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, test := range []struct {
		name string
		err  error
		want fault.Code
	}{
		{"terminated by the administrator", sqlState("57P01"), fault.Unavailable},
		{"another backend crashed", sqlState("57P02"), fault.Unavailable},
		{"starting up", sqlState("57P03"), fault.Unavailable},
		{"too many connections", sqlState("53300"), fault.Unavailable},
		{"disk full", sqlState("53100"), fault.Unavailable},
		{"connection failure", sqlState("08006"), fault.Unavailable},
		{"statement timeout", sqlState("57014"), fault.Unavailable},
		{"lock timeout", sqlState("55P03"), fault.Unavailable},
		{"serialization failure", sqlState("40001"), fault.Unavailable},
		{"deadlock", sqlState("40P01"), fault.Unavailable},
		{"a standby", sqlState("25006"), fault.Unavailable},
		{"idle in a transaction", sqlState("25P03"), fault.Unavailable},
		{"connection reset", reset, fault.Unavailable},
		{"closed in the middle", io.ErrUnexpectedEOF, fault.Unavailable},
		{"closed", fmt.Errorf("write: %w", net.ErrClosed), fault.Unavailable},
		{"the caller's deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), fault.Unavailable},
		{"a fault stays", fmt.Errorf("send: %w", fault.NoChannel()), fault.NotFound},
		{"the caller went away", context.Canceled, fault.Internal},
		{"no rows", pgx.ErrNoRows, fault.Internal},
		{"syntax", sqlState("42601"), fault.Internal},
		{"a check", sqlState("23514"), fault.Internal},
		{"another error", errors.New("another"), fault.Internal},
	} {
		got := translate(test.err)
		if fault.CodeOf(got) != test.want {
			t.Errorf("%s: %s, want %s", test.name, fault.CodeOf(got), test.want)
		}
		if !errors.Is(got, test.err) {
			t.Errorf("%s: the cause is lost", test.name)
		}
	}
	if err := translate(nil); err != nil {
		t.Errorf("nothing is %v", err)
	}
}

func TestAViolationIsOfItsConstraint(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Code: uniqueViolation, ConstraintName: clientMessageIDOnce}, true},
		{fmt.Errorf("send: %w", &pgconn.PgError{Code: uniqueViolation, ConstraintName: clientMessageIDOnce}), true},
		{&pgconn.PgError{Code: uniqueViolation, ConstraintName: "message_pkey"}, false},
		{&pgconn.PgError{Code: notNullViolation, ConstraintName: clientMessageIDOnce}, false},
		{io.EOF, false},
		{nil, false},
	} {
		if got := violates(test.err, clientMessageIDOnce); got != test.want {
			t.Errorf("%v: %v", test.err, got)
		}
	}
}

func sqlState(code string) error {
	return &pgconn.PgError{Severity: "ERROR", Code: code, Message: "a message of Postgres"}
}
