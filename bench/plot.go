package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

const (
	firstPunched id.User = 30_000_000 // of those who are written to by people that are made up
	firstPuncher id.User = 31_000_000
	firstTraced  id.User = 32_000_000 // of the people of a trace

	// batchSize is the largest batch that a worker takes, of which one in so many events changes something.
	batchSize, changing = 500, 10
	// wroteFirst is how many wrote to each before they look.
	wroteFirst = 5
	// traceParts is in how many parts a trace is played, in each of which one in traceRarely acknowledges.
	traceParts, traceRarely = 8, 100

	madeUpEvents = "made up"
)

// exchange is that somebody writes to somebody.
type exchange struct{ recipient, sender id.User }

func recipientsOf(exchanges []exchange) []int64 {
	return column(exchanges, func(e exchange) id.User { return e.recipient })
}

func sendersOf(exchanges []exchange) []int64 {
	return column(exchanges, func(e exchange) id.User { return e.sender })
}

func column(exchanges []exchange, of func(exchange) id.User) []int64 {
	ids := make([]int64, len(exchanges))
	for i, e := range exchanges {
		ids[i] = int64(of(e))
	}
	return ids
}

// plot is who writes to whom. All look before the first part, and some acknowledge at the beginning of each.
type plot struct {
	of      string
	readers []id.User
	before  []exchange
	parts   []part
}

type part struct {
	acknowledging []id.User
	events        []exchange
}

// madeUp returns events of which nine in ten change nothing: half of those repeat what was said just before, as people do
// who write several messages. Each part is one full batch for each partition, and one person of each acknowledges.
func (l *lab) madeUp() plot {
	rng := rand.New(rand.NewPCG(5, 5))
	p := plot{of: madeUpEvents, parts: make([]part, l.parts)}
	sender := firstPuncher
	for partition := range newlyunread.Partition(l.punched) {
		var readers []id.User
		for user := firstPunched; len(readers) < l.hit; user++ {
			if newlyunread.PartitionOf(user) == partition {
				readers = append(readers, user)
			}
		}
		p.readers = append(p.readers, readers...)
		var pairs []exchange // that have not been acknowledged
		meet := func(reader id.User) exchange {
			sender++
			pairs = append(pairs, exchange{reader, sender})
			return pairs[len(pairs)-1]
		}
		for _, reader := range readers {
			for range wroteFirst {
				p.before = append(p.before, meet(reader))
			}
		}
		for n := range p.parts {
			gone := readers[rng.IntN(len(readers))]
			pairs = slices.DeleteFunc(pairs, func(e exchange) bool { return e.recipient == gone })
			p.parts[n].acknowledging = append(p.parts[n].acknowledging, gone)
			var events []exchange
			for i := 1; i < batchSize; i++ { // the acknowledgment is the first
				switch {
				case i%changing == 0:
					events = append(events, meet(readers[rng.IntN(len(readers))]))
				case i > 1 && rng.IntN(2) == 0:
					events = append(events, events[len(events)-1-rng.IntN(min(len(events), 3))])
				default:
					events = append(events, pairs[rng.IntN(len(pairs))])
				}
			}
			p.parts[n].events = append(p.parts[n].events, events...)
		}
	}
	return p
}

// readPlot reads a trace as tidemark replay has it. An answer is taken for a direct message, and counts, as does a message
// for all whom it names.
func readPlot(path string) (p plot, err error) {
	file, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer file.Close()
	var text io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			return p, err
		}
	}
	var all []exchange
	people := make(map[id.User]bool)
	lines := bufio.NewScanner(text)
	for n := 1; lines.Scan(); n++ {
		values := strings.Split(lines.Text(), "\t")
		if len(values) != 6 {
			return p, fmt.Errorf("%s:%d: must have 6 columns", path, n)
		}
		if n == 1 { // the names of the columns
			continue
		}
		sender, err := strconv.ParseInt(values[2], 10, 64)
		if err != nil {
			return p, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		var told []int64
		for _, name := range append(strings.Split(values[5], ","), values[4]) {
			if to, err := strconv.ParseInt(name, 10, 64); err == nil && to != sender && !slices.Contains(told, to) {
				told = append(told, to)
				all = append(all, exchange{firstTraced + id.User(to), firstTraced + id.User(sender)})
				people[firstTraced+id.User(to)] = true
			}
		}
	}
	if len(all) < traceParts {
		return p, errors.Join(lines.Err(), fmt.Errorf("%s has too few messages to somebody", path))
	}
	p.of = "trace"
	for reader := range people {
		p.readers = append(p.readers, reader)
	}
	slices.Sort(p.readers)
	for n := range traceParts {
		part := part{events: all[n*len(all)/traceParts : (n+1)*len(all)/traceParts]}
		for i := n; i < len(p.readers); i += traceRarely {
			part.acknowledging = append(part.acknowledging, p.readers[i])
		}
		p.parts = append(p.parts, part)
	}
	return p, lines.Err()
}
