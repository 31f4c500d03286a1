package id_test

import (
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/id"
)

func TestEveryPositiveNumberIsAnID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		s := strconv.FormatInt(n, 10)
		if got, err := id.ParseUser(s); err != nil || got != id.User(n) || got.String() != s {
			t.Errorf("ParseUser(%q) = %v, %v", s, got, err)
		}
		if got, err := id.ParseChannel(s); err != nil || got != id.Channel(n) || got.String() != s {
			t.Errorf("ParseChannel(%q) = %v, %v", s, got, err)
		}
		if got, err := id.ParseMessage(s); err != nil || got != id.Message(n) || got.String() != s {
			t.Errorf("ParseMessage(%q) = %v, %v", s, got, err)
		}
	})
}

// Two spellings of one id would be two keys in a client's cache.
func TestOnlyTheCanonicalFormIsAnID(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "0", "-1", "+1", "01", " 1", "1 ", "1\n", "1.0", "1e3", "0x1", "1_000", "١", "a", "\x001",
		"9223372036854775808", "99999999999999999999",
	} {
		if got, err := id.ParseUser(s); err == nil {
			t.Errorf("ParseUser(%q) = %v", s, got)
		}
		if got, err := id.ParseChannel(s); err == nil {
			t.Errorf("ParseChannel(%q) = %v", s, got)
		}
		if got, err := id.ParseMessage(s); err == nil {
			t.Errorf("ParseMessage(%q) = %v", s, got)
		}
	}
}

func TestWhatIsNoIDIsRefusedOrRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-+ 0]?[0-9]{0,20}`)).Draw(t, "s")
		if got, err := id.ParseChannel(s); err == nil && (got < 1 || got.String() != s) {
			t.Errorf("ParseChannel(%q) = %v", s, got)
		}
	})
}

func TestMaxSeqIsWhatAJavaScriptNumberHolds(t *testing.T) {
	t.Parallel()
	if exact := float64(id.MaxSeq); id.Seq(exact) != id.MaxSeq || exact+1 != exact+2 {
		t.Errorf("MaxSeq is %d", id.MaxSeq)
	}
}
