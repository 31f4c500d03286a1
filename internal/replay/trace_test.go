package replay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"tidemark/internal/channel"
)

func TestReadTrace(t *testing.T) {
	t.Parallel()
	plain := columns + "\n" +
		"0\t1\t1\t491\t\t\n" +
		"0\t2\t2\t0\t1\t3\n" +
		"86400\t2\t3\t20000\t\t7,*,3,7"
	want := []line{
		{number: 2, channel: 1, sender: 1, length: 491},
		{number: 3, channel: 2, sender: 2, replyTo: 1, mentions: []int64{3}},
		{number: 4, at: 24 * time.Hour, channel: 2, sender: 3, length: 20000, mentions: []int64{3, 7}, everyone: true},
	}
	for name, data := range map[string][]byte{
		"plain":   []byte(plain),
		"gzipped": zipped(t, plain),
		"CRLF":    []byte(strings.ReplaceAll(plain, "\n", "\r\n")),
	} {
		got, err := collect(readTrace("trace.tsv", bytes.NewReader(data)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

func TestReadTraceRefuses(t *testing.T) {
	t.Parallel()
	const good = columns + "\n5\t1\t1\t10\t\t\n"
	crowd := "1"
	for i := range channel.MaxMentions {
		crowd += fmt.Sprintf(",%d", i+2)
	}
	for _, test := range []struct{ name, data, want string }{
		{"an empty file", "", `t:1: the header must be "seconds\tchannel\tsender\tlength\treply_to\tmentions"`},
		{"another header", "seconds,channel\n", `t:1: the header must be`},
		{"no header", "5\t1\t1\t10\t\t\n", `t:1: the header must be`},
		{"a column less", good + "5\t1\t1\t10\t\n", "t:3: must have 6 columns, not 5"},
		{"a column more", good + "5\t1\t1\t10\t\t\t\n", "t:3: must have 6 columns, not 7"},
		{"an empty line", good + "\n", "t:3: must have 6 columns, not 1"},
		{"no time", good + "now\t1\t1\t10\t\t\n", `t:3: column seconds must be a whole number from 0 to 2147483647, not "now"`},
		{"a negative time", good + "-1\t1\t1\t10\t\t\n", "t:3: column seconds must be a whole number from 0"},
		{"time running backwards", good + "4\t1\t1\t10\t\t\n", `t:3: column seconds must be at least 5, as in the line before, not "4"`},
		{"a channel 0", good + "5\t0\t1\t10\t\t\n", "t:3: column channel must be a whole number from 1 to 2147483647"},
		{"a negative channel", good + "5\t-1\t1\t10\t\t\n", "t:3: column channel must be a whole number from 1"},
		{"a sender 0", good + "5\t1\t0\t10\t\t\n", "t:3: column sender must be a whole number from 1"},
		{"no sender", good + "5\t1\t\t10\t\t\n", `t:3: column sender must be a whole number from 1 to 2147483647, not ""`},
		{"a sender past every number", good + "5\t1\t2147483648\t10\t\t\n", "t:3: column sender must be"},
		{"a sender past int64", good + "5\t1\t99999999999999999999\t10\t\t\n", "t:3: column sender must be"},
		{"a fraction", good + "5\t1\t1.5\t10\t\t\n", "t:3: column sender must be"},
		{"a negative length", good + "5\t1\t1\t-1\t\t\n", "t:3: column length must be a whole number from 0 to 20000"},
		{"a length too large", good + "5\t1\t1\t20001\t\t\n", "t:3: column length must be a whole number from 0 to 20000"},
		{"a reply to nobody", good + "5\t1\t1\t10\t0\t\n", "t:3: column reply_to must be a whole number from 1"},
		{"a reply to oneself", good + "5\t1\t1\t10\t1\t\n", "t:3: column reply_to must be another person than the sender"},
		{"a name for a mention", good + "5\t1\t1\t10\t\tann\n", "t:3: column mentions must be numbers from 1 to 2147483647, or *, with commas between"},
		{"an empty mention", good + "5\t1\t1\t10\t\t2,,3\n", "t:3: column mentions must be"},
		{"a blank in mentions", good + "5\t1\t1\t10\t\t2, 3\n", "t:3: column mentions must be"},
		{"a mention 0", good + "5\t1\t1\t10\t\t0\n", "t:3: column mentions must be"},
		{"too many mentions", good + "5\t1\t1\t10\t\t" + crowd + "\n", "t:3: column mentions must be at most 50 people"},
		{"a line without end", good + strings.Repeat("1", 1<<20), "t:3: a line must have fewer than 65536 bytes"},
		{"half a gzip header", "\x1f\x8b\x08", "t:1: "},
		{"half a gzip file", string(zipped(t, good)[:30]), "t:1: unexpected EOF"},
	} {
		lines, err := collect(readTrace("t", strings.NewReader(test.data)))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got the error %v, want %q", test.name, err, test.want)
		}
		if len(lines) > 1 {
			t.Errorf("%s: %d lines before the error, want at most the good one", test.name, len(lines))
		}
	}
}

func TestReadTraceCutShort(t *testing.T) {
	t.Parallel()
	var plain strings.Builder
	plain.WriteString(columns + "\n")
	for i := range 10_000 {
		fmt.Fprintf(&plain, "%d\t1\t%d\t%d\t\t\n", i, 1+i*7919%1000, i*104729%20000)
	}
	data := zipped(t, plain.String())
	lines, err := collect(readTrace("t", bytes.NewReader(data[:len(data)/2])))
	if want := fmt.Sprintf("t:%d: unexpected EOF", len(lines)+2); err == nil || err.Error() != want {
		t.Errorf("got the error %v after %d lines, want %s", err, len(lines), want)
	}
	if len(lines) < 1000 {
		t.Errorf("only %d lines came before the end of half a file", len(lines))
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(columns + "\n0\t1\t1\t491\t\t\n0\t2\t2\t0\t1\t3,*\n"))
	f.Add([]byte(columns + "\n1\t1\t1\t1\t\t\n0\t1\t1\t1\t\t\n"))
	f.Add(zipped(f, columns+"\n7\t1\t1\t1\t\t\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := line{number: 1}
		for l, err := range readTrace("t", bytes.NewReader(data)) {
			if err != nil {
				if want := fmt.Sprintf("t:%d: ", last.number+1); !strings.HasPrefix(err.Error(), want) && last.number > 1 {
					t.Errorf("the error %q does not start with %q", err, want)
				}
				break
			}
			switch {
			case l.number != last.number+1:
				t.Errorf("line %d follows line %d", l.number, last.number)
			case l.at < last.at, l.channel < 1, l.sender < 1, l.length < 0, l.length > channel.MaxBodyLength,
				l.replyTo < 0, l.replyTo == l.sender, len(l.mentions) > channel.MaxMentions:
				t.Errorf("line %+v was let through", l)
			}
			last = l
		}
	})
}

func collect(lines iter.Seq2[line, error]) (all []line, err error) {
	for l, err := range lines {
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}

func zipped(tb testing.TB, plain string) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write([]byte(plain)); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}
