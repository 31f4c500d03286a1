package graph_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// mostCPU is what a request may cost that is refused.
	mostCPU = 50 * time.Millisecond
	// mostBytes is how long its answer may be.
	mostBytes = 16 << 10
)

// refused returns queries that were made to cost much, and are executed in no part.
func refused() map[string]string {
	return map[string]string{
		"1,000 aliases":          `{` + repeat(1000, func(i int) string { return fmt.Sprintf("a%d:__typename ", i) }) + `}`,
		"20,000 aliases":         `{` + repeat(20_000, func(i int) string { return fmt.Sprintf("a%d:__typename ", i) }) + `}`,
		"660 aliases":            `{` + repeat(660, func(i int) string { return fmt.Sprintf("a%d:__typename ", i) }) + `}`,
		"a field 20,000 times":   `{` + strings.Repeat("__typename ", 20_000) + `}`,
		"a field 3,000 times":    `{me{` + strings.Repeat("id ", 3000) + `}}`,
		"a field 1,900 times":    `{me{` + strings.Repeat("id ", 1900) + `}}`,
		"an object 490 times":    `{` + strings.Repeat("me{id}", 490) + `}`,
		"a conflict 240 times":   `{` + strings.Repeat("me{a:id} me{a:displayName} ", 120) + `}`,
		"1,900 unknown fields":   `{` + strings.Repeat("x ", 1900) + `}`,
		"140 unknown fields":     `{` + strings.Repeat("x ", 140) + `}`,
		"10,000 directives":      `{me{id ` + strings.Repeat("@aa ", 10_000) + `}}`,
		"900 directives":         `{me{id ` + strings.Repeat("@aa ", 900) + `}}`,
		"300 skips":              `{me{id ` + strings.Repeat("@skip(if:true) ", 300) + `}}`,
		"60 deep":                `{me` + strings.Repeat("{friends", 60) + `{id}` + strings.Repeat("}", 61),
		"20,000 deep":            `{me` + strings.Repeat("{friends", 20_000) + `{id}` + strings.Repeat("}", 20_001),
		"240 inline fragments":   `{` + strings.Repeat("...{me{id}", 240) + strings.Repeat("}", 241),
		"50,000 lists":           `{channel(id:` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + `){id}}`,
		"900 lists":              `{channel(id:` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `){id}}`,
		"900 lists of our own":   `{syncChannel(channelId:1 deviceId:"d" after:` + strings.Repeat("[", 900) + `1e999` + strings.Repeat("]", 900) + `){__typename}}`,
		"600 arguments":          `{channel(` + strings.Repeat("id:1 ", 600) + `){id}}`,
		"600 fields of an input": `{syncDevice(deviceId:1 held:{` + strings.Repeat("channelId:1 ", 600) + `}){channels{action}}}`,
		"600 variables":          `query(` + repeat(600, func(i int) string { return fmt.Sprintf("$a%d:Int ", i) }) + `){me{id}}`,
		"280 operations":         repeat(280, func(i int) string { return fmt.Sprintf("query A%d{me{id}}", i) }),
		"8,000 comments":         `{me{id}}` + strings.Repeat("#\n", 8000),
		"a long name":            `{` + strings.Repeat("x", 16_000) + `}`,
		"a long string":          `{channel(id:{a:"` + strings.Repeat("x", 16_000) + `"}){id}}`,
		"a cycle":                `{...A} fragment A on Query{...B} fragment B on Query{...A}`,
		"a cycle of 150":         `{...F0}` + fragments(150, "Query", func(i int) string { return fmt.Sprintf("...F%d ...F%d", (i+1)%150, (i+7)%150) }),
		"cycles of 22": `{...F0}` + fragments(22, "Query", func(int) string {
			return repeat(22, func(i int) string { return fmt.Sprintf("...F%d ", i) })
		}),
		"18 doublings":             `{...F0}` + fragments(18, "Query", twice) + ` fragment F18 on Query{me{id}}`,
		"140 doublings":            `{...F0}` + fragments(140, "Query", twice) + ` fragment F140 on Query{me{id}}`,
		"14 doublings of objects":  `{me{...F0}}` + fragments(14, "Viewer", func(i int) string { return fmt.Sprintf("a:friends{...F%d} b:friends{...F%d}", i+1, i+1) }) + ` fragment F14 on Viewer{id}`,
		"a chain of 120":           `{...F0}` + fragments(120, "Query", func(i int) string { return fmt.Sprintf("me{id}...F%d", i+1) }) + ` fragment F120 on Query{me{id}}`,
		"introspection in circles": `{__schema{types{fields{type{fields{type{fields{type{fields{type{name}}}}}}}}}}}`,
		"introspection":            `{__schema{types{name}}}`,
		"a number beyond bounds":   `mutation{markRead(channelId:1 upToSeq:99999999999999999999){outcome}}`,
		"pages of pages":           `{badges(first:500){nodes{channel{members(first:500){nodes{id}}}}}}`,
	}
}

// harmless returns such queries that stay within all limits, and are executed.
func harmless() map[string]string {
	return map[string]string{
		"20 aliases":           `{` + repeat(20, func(i int) string { return fmt.Sprintf("a%d:me{id} ", i) }) + `}`,
		"a field 140 times":    `{me{` + strings.Repeat("id ", 140) + `}}`,
		"490 inline fragments": `{` + strings.Repeat("...{", 490) + `me{id}` + strings.Repeat("}", 491),
		"6 doublings":          `{...F0}` + fragments(6, "Query", twice) + ` fragment F6 on Query{__typename}`,
		"a chain of 18":        `{...F0}` + fragments(18, "Query", func(i int) string { return fmt.Sprintf("me{id}...F%d", i+1) }) + ` fragment F18 on Query{me{id}}`,
		"200 cursors":          `{syncDevice(deviceId:1 held:[` + strings.Repeat("{channelId:1 seq:1}", 200) + `]){channels{action}}}`,
		"a long block string":  `mutation{sendMessage(channelId:1 body:"""` + strings.Repeat("\n ", 8000) + `"""){message{deleted}}}`,
	}
}

// twice spreads the next fragment twice.
func twice(i int) string { return fmt.Sprintf("...F%d ...F%d", i+1, i+1) }

// fragments declares F0 and so on.
func fragments(n int, on string, selections func(i int) string) string {
	return repeat(n, func(i int) string { return fmt.Sprintf(" fragment F%d on %s{%s}", i, on, selections(i)) })
}

func TestHostileQueriesAreCheap(t *testing.T) {
	for name, query := range refused() {
		t.Run(name, func(t *testing.T) {
			if got := cheaply(t, params{Query: query}.json(t)); got.code() == "" || got.Data != nil {
				t.Errorf("executed: %.300s", got.body)
			}
		})
	}
	for name, query := range harmless() {
		t.Run(name, func(t *testing.T) {
			if got := cheaply(t, params{Query: query}.json(t)); got.code() != "" {
				t.Errorf("refused: %.300s", got.body)
			}
		})
	}
}

func TestHostileBodiesAreCheap(t *testing.T) {
	const limit = 512 << 10
	list := func(entry string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(entry+",", (limit-200)/(len(entry)+1)), ",") + "]"
	}
	for name, body := range map[string]string{
		"a batch":          list(`{"query":"{__typename}"}`),
		"nested variables": `{"query":"{__typename}","variables":{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`,
		"numbers":          `{"query":"{__typename}","variables":{"a":` + list("0") + `}}`,
		"people":           `{"query":"mutation($u:[ID!]!){addMembers(channelId:1 userIds:$u){id}}","variables":{"u":` + list("1") + `}}`,
		"people, again and again": `{"query":"mutation($u:[ID!]!){` + repeat(20, func(i int) string { return fmt.Sprintf("a%d:addMembers(channelId:1 userIds:$u){id} ", i) }) +
			`}","variables":{"u":[` + strings.Repeat("1,", 9_900) + `1]}}`,
		"members, again and again": `{"query":"mutation($i:CreateChannelInput!){` + repeat(20, func(i int) string { return fmt.Sprintf("a%d:createChannel(input:$i){id} ", i) }) +
			`}","variables":{"i":{"kind":"GROUP","memberIds":[` + strings.Repeat("1,", 2400) + `1]}}}`,
		"cursors":           `{"query":"mutation($c:[ReadCursor!]!){markManyRead(cursors:$c){outcome}}","variables":{"c":` + list(`{"channelId":1,"upToSeq":1}`) + `}}`,
		"keys":              `{"query":"{__typename}","variables":{` + repeat(40_000, func(i int) string { return fmt.Sprintf(`"a%d":0,`, i) }) + `"a":0}}`,
		"30 MB":             `{"query":"{__typename}","variables":{"a":"` + strings.Repeat("x", 30<<20) + `"}}`,
		"an operation name": `{"query":"{__typename}","operationName":"` + strings.Repeat("x", 500_000) + `"}`,
		"an enum":           `{"query":"mutation($i:CreateChannelInput!){createChannel(input:$i){id}}","variables":{"i":{"kind":"` + strings.Repeat("x", 500_000) + `"}}}`,
		"a hash":            `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + strings.Repeat("x", 500_000) + `"}}}`,
		"a wish for traces": `{"query":"{me{no}}","extensions":{"tracing":true}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := cheaply(t, body); len(got.body) > 1000 {
				t.Errorf("an answer of %d bytes", len(got.body))
			}
		})
	}
}

// cheaply posts a body as Ann, and fails the test if that costs more than it may. Where merely reading the body as
// JSON takes a third of that, because the race detector looks on, three times the reading is allowed.
func cheaply(t *testing.T, body string) (got answer) {
	t.Helper()
	read := cheapest(t, 0, func() {
		decoder := json.NewDecoder(io.LimitReader(strings.NewReader(body), 512<<10))
		decoder.UseNumber()
		var value any
		_ = decoder.Decode(&value)
	})
	allowed := max(mostCPU, 3*read)
	cost := cheapest(t, allowed, func() {
		got = do(t, serve(), http.MethodPost, "/graphql", body, as(ann)) // no query is known yet
	})
	if cost > allowed || len(got.body) > mostBytes {
		t.Errorf("%v of CPU, and an answer of %d bytes", cost, len(got.body))
	}
	t.Logf("%v, read in %v: %d %.200s", cost, read, got.status, got.body)
	return got
}

// cheapest returns the least that something costs in a few tries, or the first that is no more than enough. Tests
// that are not parallel run by themselves, so what the process uses is what is tried; but the garbage of others is
// collected at any time.
func cheapest(t *testing.T, enough time.Duration, try func()) time.Duration {
	t.Helper()
	least := time.Hour
	for range 5 {
		before := cpuTime(t)
		try()
		if least = min(least, cpuTime(t)-before); least <= enough {
			break
		}
	}
	return least
}

// cpuTime is what the process has used.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
