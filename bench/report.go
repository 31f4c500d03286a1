package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// bound is what the median of a figure must keep to. The zero bound asks nothing.
type bound struct {
	sign  string
	limit float64
}

func atMost(limit float64) bound  { return bound{"≤", limit} }
func atLeast(limit float64) bound { return bound{"≥", limit} }

func (b bound) holds(n float64) bool {
	switch b.sign {
	case "≤":
		return n <= b.limit
	case "≥":
		return n >= b.limit
	default:
		return true
	}
}

// row is one line of the report.
type row struct {
	id     string
	what   string
	figure figure
	format string // of its numbers
	must   bound
	timed  bool
}

// onTime says that the row depends on how fast the machine is at the moment, or on how much is measured. Others are
// counts.
func (r row) onTime() row {
	r.timed = true
	return r
}

func (r row) verdict(quick bool) string {
	switch {
	case r.must == bound{}:
		return ""
	case r.timed && quick:
		return "not judged"
	case r.must.holds(r.figure.median()):
		return "ok"
	default:
		return "FAIL"
	}
}

type report struct {
	quick bool
	rows  []row
}

// kept reports whether every figure is what it must be.
func (r report) kept() bool {
	for _, row := range r.rows {
		if row.verdict(r.quick) == "FAIL" {
			return false
		}
	}
	return true
}

func (r report) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "id\twhat\tmeasured\tMUST\t")
	for _, row := range r.rows {
		must := ""
		if row.must != (bound{}) {
			must = row.must.sign + " " + fmt.Sprintf(row.format, row.must.limit)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", row.id, row.what, row.figure.text(row.format), must, row.verdict(r.quick))
	}
	return table.Flush()
}
