package main

import (
	"bytes"
	"testing"
)

func TestFigureText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		figure figure
		format string
		want   string
	}{
		{figure{3}, "%.0f", "3"},
		{figure{2, 2, 2}, "%.2f", "2.00"},
		{figure{2.001, 2.002}, "%.2f", "2.00"},
		{figure{5, 1, 3}, "%.0f", "3 [1–5]"},
		{figure{4, 1, 2, 3}, "%.1f B", "2.5 B [1.0 B–4.0 B]"},
	} {
		if got := test.figure.text(test.format); got != test.want {
			t.Errorf("%v is written %q, want %q", test.figure, got, test.want)
		}
	}
}

func TestMedianLeavesTheOrder(t *testing.T) {
	t.Parallel()
	f := figure{3, 1, 2}
	if got := f.median(); got != 2 {
		t.Errorf("the median is %v, want 2", got)
	}
	if f[0] != 3 || f[1] != 1 || f[2] != 2 {
		t.Errorf("the rounds are in another order: %v", f)
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		row         row
		full, quick string
	}{
		{row{figure: figure{9}}, "", ""},
		{row{figure: figure{1}, must: atMost(1)}, "ok", "ok"},
		{row{figure: figure{1.01}, must: atMost(1)}, "FAIL", "FAIL"},
		{row{figure: figure{1.5}, must: atLeast(1.5)}, "ok", "ok"},
		{row{figure: figure{1.49}, must: atLeast(1.5)}, "FAIL", "FAIL"},
		{row{figure: figure{0, 0, 9}, must: atMost(0)}, "ok", "ok"}, // the median is what counts
		{row{figure: figure{1}, must: atLeast(2)}.onTime(), "FAIL", "not judged"},
		{row{figure: figure{3}, must: atLeast(2)}.onTime(), "ok", "not judged"},
	} {
		if got := test.row.verdict(false); got != test.full {
			t.Errorf("%v, which must be %v: %q, want %q", test.row.figure, test.row.must, got, test.full)
		}
		if got := test.row.verdict(true); got != test.quick {
			t.Errorf("%v, which must be %v, in a quick run: %q, want %q", test.row.figure, test.row.must, got, test.quick)
		}
		if kept := (report{rows: []row{test.row}}).kept(); kept != (test.full != "FAIL") {
			t.Errorf("%v, which must be %v: kept is %v", test.row.figure, test.row.must, kept)
		}
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := report{rows: []row{
		{id: "B4", what: "rows", figure: figure{3, 3}, format: "%.0f", must: atMost(2)},
		{id: "B11", what: "time", figure: figure{1, 1.5, 2}, format: "%.2f"},
	}}.print(&out)
	if err != nil {
		t.Fatal(err)
	}
	want := "" +
		"id   what  measured          MUST  \n" +
		"B4   rows  3                 ≤ 2   FAIL\n" +
		"B11  time  1.50 [1.00–2.00]        \n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	before, after := cost{}, cost{}
	before[wal], after[wal], after[written] = 100, 500, 8
	spent := after.less(before).each(4)
	if spent[wal] != 100 || spent[written] != 2 || spent[pages] != 0 {
		t.Errorf("each of four calls cost %v", spent)
	}
	if after[wal] != 500 {
		t.Error("the cost that was subtracted from is another one now")
	}
}

func TestAttributable(t *testing.T) {
	t.Parallel()
	var m markReads
	m.whole.pace = pace{calls: 1000, took: 2e9}
	m.whole.cost[wal] = 0.5
	m.idle[wal] = 100 // bytes a second, of 500 calls
	if got := m.attributable(); got != 0.3 {
		t.Errorf("%v bytes belong to a call, want 0.3", got)
	}
}
