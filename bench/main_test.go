package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestQuick runs everything once, on real engines. What is counted must be what it must be also here; time is not
// judged.
func TestQuick(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := run([]string{"-quick", "-rounds", "1"}, &out, t.Output())
	t.Logf("\n%s", &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range experiments() {
		if !regexp.MustCompile(`(?m)^` + e.id + ` .*\d`).Match(out.Bytes()) {
			t.Errorf("nothing was measured of %s", e.id)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   string
		rounds int
		chosen string
	}{
		{"", 5, "B1 B3b B4 B5 B6 B7 B8 B9 B10 B11 B14 N1 N2 R1"},
		{"-quick", 2, "B1 B3b B4 B5 B6 B7 B8 B9 B10 B11 B14 N1 N2 R1"},
		{"-quick -rounds 7", 7, "B1 B3b B4 B5 B6 B7 B8 B9 B10 B11 B14 N1 N2 R1"},
		{"-only B1", 5, "B1"},
		{"-only B11,B4", 5, "B4 B11"},
	} {
		opts, err := parse(strings.Fields(test.args), t.Output())
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		var chosen []string
		for _, e := range opts.chosen {
			chosen = append(chosen, e.id)
		}
		if got := strings.Join(chosen, " "); got != test.chosen || opts.rounds != test.rounds {
			t.Errorf("%q: %d rounds of %s, want %d of %s", test.args, opts.rounds, got, test.rounds, test.chosen)
		}
	}
	for _, args := range []string{"-only B99", "-only B4,", "-only B4,B4", "-rounds -1", "-rounds x", "more"} {
		if _, err := parse(strings.Fields(args), t.Output()); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
