// Package fault is the one error type that crosses Tidemark's packages: a code from a closed list and a
// sentence that may be shown to the person who made the call. Any other error is internal and is never shown.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of fault it is. Clients read it as extensions.code.
type Code string

// The closed list of codes. GraphQL's own protocol codes (parse, validation, persisted queries) stand beside it.
const (
	BadUserInput         Code = "BAD_USER_INPUT"
	Unauthenticated      Code = "UNAUTHENTICATED"
	Forbidden            Code = "FORBIDDEN"
	NotFound             Code = "NOT_FOUND"
	Conflict             Code = "CONFLICT"
	RateLimited          Code = "RATE_LIMITED"
	Unavailable          Code = "UNAVAILABLE"
	Internal             Code = "INTERNAL"
	QueryTooLarge        Code = "QUERY_TOO_LARGE"
	TooManySubscriptions Code = "TOO_MANY_SUBSCRIPTIONS"
)

// Error is a fault with a message for people. Err, when set, is what caused it: for the log, never for a client.
type Error struct {
	Code    Code
	Message string
	// Argument is the name of the argument or input field at fault; empty where no single one is.
	Argument string
	// RetryAfter is how long to wait before trying again; zero where waiting does not help or is not known.
	RetryAfter time.Duration
	Err        error
}

// New returns a fault with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// BadInput says that an argument is not what it may be. The message starts with the argument's name, and rule
// says what is allowed: BadInput("first", "must be from 1 to %d", 500).
func BadInput(argument, rule string, args ...any) *Error {
	return &Error{Code: BadUserInput, Argument: argument, Message: argument + " " + fmt.Sprintf(rule, args...)}
}

// NoChannel is the answer for a channel that does not exist and for one that the viewer is not in: the two must
// not be told apart.
func NoChannel() *Error {
	return &Error{Code: NotFound, Argument: "channelId", Message: "no such channel"}
}

// NoMessage is the answer for a message that does not exist and for one that the viewer may not see.
func NoMessage() *Error {
	return &Error{Code: NotFound, Argument: "seq", Message: "no such message"}
}

// NotAvailable says that a part the call needs is away for the moment, and keeps the cause for the log.
func NotAvailable(cause error) *Error {
	return &Error{Code: Unavailable, Message: "temporarily unavailable, try again", Err: cause}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first fault in err's chain, and Internal where there is none.
func CodeOf(err error) Code {
	var f *Error
	if errors.As(err, &f) {
		return f.Code
	}
	return Internal
}

// MessageOf returns what may be shown of err: the message of the first fault in its chain, or that it is internal.
func MessageOf(err error) string {
	var f *Error
	if errors.As(err, &f) {
		return f.Message
	}
	return "internal error"
}
