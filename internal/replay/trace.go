package replay

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/internal/channel"
)

// maxNumber bounds every number of a trace that has no closer bound: 2^31-1.
const maxNumber = 1<<31 - 1

// columns are what a trace begins with, and what each of its lines has.
const columns = "seconds\tchannel\tsender\tlength\treply_to\tmentions"

var errHeader = fmt.Errorf("the header must be %q", columns)

// line is one message of a trace.
type line struct {
	number   int           // in the file: the header is 1
	at       time.Duration // since the first message
	channel  int64
	sender   int64
	length   int   // characters
	replyTo  int64 // 0 where it answers nobody
	mentions []int64
	everyone bool
}

// readFile yields the lines of the trace in a file, as readTrace does.
func readFile(path string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(line{}, fmt.Errorf("read trace: %w", err))
			return
		}
		defer file.Close()
		for l, err := range readTrace(path, file) {
			if !yield(l, err) {
				return
			}
		}
	}
}

// readTrace yields the lines of a trace, plain or gzipped, and holds one of them at a time. What is no such trace ends
// with an error that begins with the name and the number of the line.
func readTrace(name string, r io.Reader) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		number := 1
		fail := func(err error) { yield(line{}, fmt.Errorf("%s:%d: %w", name, number, err)) }

		plain, err := unzip(r)
		if err != nil {
			fail(err)
			return
		}
		scanner := bufio.NewScanner(plain)
		var last time.Duration
		for ; scanner.Scan(); number++ {
			var l line
			if number > 1 {
				l, err = parseLine(scanner.Text(), last)
			} else if scanner.Text() != columns {
				err = errHeader
			}
			if err != nil {
				fail(cmp.Or(scanner.Err(), err)) // the last line of a file that is cut short is not to blame
				return
			}
			l.number, last = number, l.at
			if number > 1 && !yield(l, nil) {
				return
			}
		}
		switch err := scanner.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			fail(fmt.Errorf("a line must have fewer than %d bytes", bufio.MaxScanTokenSize))
		case err != nil:
			fail(err)
		case number == 1:
			fail(errHeader)
		}
	}
}

// unzip returns what r holds, unpacked if it is gzipped.
func unzip(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	// A file too short to be gzipped is left to the header's check.
	if magic, _ := buffered.Peek(2); string(magic) != "\x1f\x8b" {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

func parseLine(text string, last time.Duration) (line, error) {
	values := strings.Split(text, "\t")
	if want := strings.Count(columns, "\t") + 1; len(values) != want {
		return line{}, fmt.Errorf("must have %d columns, not %d", want, len(values))
	}
	var p parser
	l := line{
		at:      time.Duration(p.number("seconds", values[0], 0, maxNumber)) * time.Second,
		channel: p.number("channel", values[1], 1, maxNumber),
		sender:  p.number("sender", values[2], 1, maxNumber),
		length:  int(p.number("length", values[3], 0, channel.MaxBodyLength)),
	}
	if l.at < last {
		p.refuse("seconds", values[0], "at least %d, as in the line before", last/time.Second)
	}
	if values[4] != "" {
		l.replyTo = p.number("reply_to", values[4], 1, maxNumber)
		if l.replyTo == l.sender {
			p.refuse("reply_to", values[4], "another person than the sender")
		}
	}
	if values[5] != "" {
		l.mentions, l.everyone = p.mentions(values[5])
	}
	return l, p.err
}

// parser keeps the first thing that is wrong with a line.
type parser struct{ err error }

func (p *parser) number(column, value string, low, high int64) int64 {
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || int64(n) < low || int64(n) > high {
		p.refuse(column, value, "a whole number from %d to %d", low, high)
	}
	return int64(n)
}

// mentions returns who is named, in ascending order and each once.
func (p *parser) mentions(value string) (people []int64, everyone bool) {
	for name := range strings.SplitSeq(value, ",") {
		if name == "*" {
			everyone = true
			continue
		}
		n, err := strconv.ParseUint(name, 10, 31)
		if err != nil || n == 0 {
			p.refuse("mentions", value, "numbers from 1 to %d, or *, with commas between", maxNumber)
		}
		people = append(people, int64(n))
	}
	slices.Sort(people)
	people = slices.Compact(people)
	if len(people) > channel.MaxMentions {
		p.refuse("mentions", value, "at most %d people", channel.MaxMentions)
	}
	return people, everyone
}

func (p *parser) refuse(column, value, rule string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("column %s must be %s, not %.40q", column, fmt.Sprintf(rule, args...), value)
	}
}
