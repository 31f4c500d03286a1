package fault_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/fault"
)

func TestCodeAndMessageOfAChain(t *testing.T) {
	t.Parallel()
	secret := errors.New("password of the database")
	for _, test := range []struct {
		name    string
		err     error
		code    fault.Code
		message string
	}{
		{"a fault", fault.NoChannel(), fault.NotFound, "no such channel"},
		{"wrapped", fmt.Errorf("mark read: %w", fault.NoChannel()), fault.NotFound, "no such channel"},
		{"with its cause", fault.NotAvailable(secret), fault.Unavailable, "temporarily unavailable, try again"},
		{"the outermost counts", &fault.Error{Code: fault.Conflict, Message: "taken", Err: fault.NoChannel()}, fault.Conflict, "taken"},
		{"joined", errors.Join(io.EOF, fault.NoChannel()), fault.NotFound, "no such channel"},
		{"no fault", fmt.Errorf("query: %w", secret), fault.Internal, "internal error"},
	} {
		if got := fault.CodeOf(test.err); got != test.code {
			t.Errorf("%s: code %s, want %s", test.name, got, test.code)
		}
		if got := fault.MessageOf(test.err); got != test.message {
			t.Errorf("%s: message %q, want %q", test.name, got, test.message)
		}
	}
}

func TestCauseIsForTheLog(t *testing.T) {
	t.Parallel()
	err := fault.NotAvailable(io.EOF)
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is lost")
	}
	if !strings.Contains(err.Error(), "EOF") || strings.Contains(err.Message, "EOF") {
		t.Errorf("Error() is %q and Message %q", err.Error(), err.Message)
	}
}

func TestBadInputNamesItsArgument(t *testing.T) {
	t.Parallel()
	err := fault.BadInput("first", "must be from 1 to %d", 500)
	if err.Code != fault.BadUserInput || err.Argument != "first" || err.Message != "first must be from 1 to 500" {
		t.Errorf("%+v", err)
	}
}

func TestCheckRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low, n, high := rapid.Int64().Draw(t, "low"), rapid.Int64().Draw(t, "n"), rapid.Int64().Draw(t, "high")
		err := fault.CheckRange("seq", n, low, high)
		if within := low <= n && n <= high; (err == nil) != within {
			t.Errorf("%d from %d to %d: %v", n, low, high, err)
		}
		if err != nil && fault.CodeOf(err) != fault.BadUserInput {
			t.Errorf("code %s", fault.CodeOf(err))
		}
	})
}

func TestCheckText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text      string
		low, high int
		ok        bool
	}{
		{"", 0, 0, true},
		{"", 1, 5, false},
		{"seas\u00e9", 5, 5, true}, // characters, not bytes
		{"🌊🌊", 1, 2, true},
		{"🌊🌊🌊", 1, 2, false},
		{"a\x00b", 1, 5, false},
		{"a\xffb", 1, 5, false},
		{"\xed\xa0\x80", 1, 5, false}, // half of a surrogate pair
	} {
		err := fault.CheckText("body", test.text, test.low, test.high)
		if (err == nil) != test.ok {
			t.Errorf("%q from %d to %d: %v", test.text, test.low, test.high, err)
		}
		if err != nil && (fault.CodeOf(err) != fault.BadUserInput || !strings.HasPrefix(fault.MessageOf(err), "body ")) {
			t.Errorf("%q: %v", test.text, err)
		}
	}
}
