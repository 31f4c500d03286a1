// Command bench measures what Tidemark's promises cost, and fails where one is not kept. It starts a Postgres of its
// own, durable as in production, and removes it at the end. docs/benchmarks.md says what each row means.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// errMissed says that a measured figure is not what it must be.
var errMissed = errors.New("a figure is not what it must be")

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// experiment measures the rows of one id.
type experiment struct {
	id      string
	measure func(context.Context, *lab) ([]row, error)
}

func experiments() []experiment {
	return []experiment{
		{"B1", badgeList},
		{"B3b", redundantMarkRead},
		{"B4", sendBySize},
		{"B5", punching},
		{"B6", idleSubscribers},
		{"B7", fanOut},
		{"B8", connecting},
		{"B9", publishing},
		{"B10", arriving},
		{"B11", syncByGap},
		{"B14", copySize},
		{"N1", newlyUnread},
		{"N2", warmRead},
		{"R1", readReceipts},
	}
}

func run(args []string, out, progress io.Writer) (err error) {
	opts, err := parse(args, progress)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := openLab(ctx, opts, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close(context.WithoutCancel(ctx))) }()

	before, err := syncTime(l.dir, wholeProbe)
	if err != nil {
		return err
	}
	if err := l.describe(ctx, out); err != nil {
		return err
	}
	report := report{quick: opts.quick}
	for _, e := range opts.chosen {
		l.say("measuring %s", e.id)
		rows, err := e.measure(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", e.id, err)
		}
		for _, r := range rows {
			r.id = e.id
			report.rows = append(report.rows, r)
		}
	}
	if err := report.print(out); err != nil {
		return err
	}
	after, err := syncTime(l.dir, wholeProbe)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nfsync of 8 kB: %v before, %v after; load average now %s\n", before, after, loadAverage())
	if !report.kept() {
		return errMissed
	}
	return nil
}

// options is what was asked for on the command line.
type options struct {
	rounds int
	quick  bool
	trace  string // a file that B5 plays
	plot   string // where a picture of R1 goes; empty: nowhere
	chosen []experiment
}

func parse(args []string, usage io.Writer) (options, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	var opts options
	var only string
	flags.IntVar(&opts.rounds, "rounds", 0, "how often each figure is measured (default 5, or 2 with -quick)")
	flags.BoolVar(&opts.quick, "quick", false, "look only whether it works: little data, short windows, no verdict on time")
	flags.StringVar(&opts.trace, "trace", "", "for B5: play the messages of this `file`, as tidemark replay has it, and none that are made up")
	flags.StringVar(&opts.plot, "plot", "", "draw what mark reads cost (R1) into this `file`, as SVG")
	flags.StringVar(&only, "only", "", "measure only these `ids`, such as B4,B11")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	switch {
	case flags.NArg() > 0:
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case opts.rounds < 0:
		return options{}, errors.New("-rounds must be positive")
	case opts.rounds == 0 && opts.quick:
		opts.rounds = 2
	case opts.rounds == 0:
		opts.rounds = 5
	}
	opts.chosen = experiments()
	if only == "" {
		return opts, nil
	}
	wanted := strings.Split(only, ",")
	opts.chosen = slices.DeleteFunc(opts.chosen, func(e experiment) bool { return !slices.Contains(wanted, e.id) })
	if len(opts.chosen) != len(wanted) {
		return options{}, fmt.Errorf("-only must name ids of docs/benchmarks.md, each once, not %q", only)
	}
	return opts, nil
}
