package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"tidemark/graph"
	"tidemark/internal/fault"
	"tidemark/internal/person"
)

func TestErrorsHaveACodeAndAMessageForPeople(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		code    fault.Code
		message string
		log     string // the level, and empty for nothing
	}{
		"fault":              {fault.New(fault.Conflict, "no such luck"), fault.Conflict, "no such luck", ""},
		"wrapped fault":      {fmt.Errorf("secret: %w", fault.NoChannel()), fault.NotFound, "no such channel", ""},
		"fault with a cause": {&fault.Error{Code: fault.Forbidden, Message: "no", Err: errors.New("secret")}, fault.Forbidden, "no", ""},
		"away":               {fault.NotAvailable(errors.New("secret")), fault.Unavailable, "temporarily unavailable, try again", "WARN"},
		"away without cause": {fault.NotAvailable(nil), fault.Unavailable, "temporarily unavailable, try again", ""},
		"too late":           {fmt.Errorf("secret: %w", context.DeadlineExceeded), fault.Unavailable, "temporarily unavailable, try again", "WARN"},
		"internal":           {errors.New("secret"), fault.Internal, "internal error", "ERROR"},
		"internal fault":     {fault.New(fault.Internal, "secret"), fault.Internal, "internal error", "ERROR"},
		"canceled inside":    {fmt.Errorf("secret: %w", context.Canceled), fault.Internal, "internal error", "ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			api := serve(logged(&log), failing(func(context.Context) error { return test.err }))
			got := ask(t, api, `query Start{me{name:displayName}}`)
			wantCode(t, got, test.code)
			if got.Errors[0].Message != test.message || fmt.Sprint(got.Errors[0].Path) != "[me name]" || strings.Contains(got.body, "secret") {
				t.Error(got.body)
			}
			switch {
			case test.log == "" && log.Len() > 0:
				t.Errorf("logged: %s", log.String())
			case test.log != "":
				for _, want := range []string{"level=" + test.log, "operation=Start", "path=me.name", "secret"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log lacks %s: %s", want, log.String())
					}
				}
			}
		})
	}
}

func TestErrorsTellTheArgumentAndWhenToTryAgain(t *testing.T) {
	t.Parallel()
	api := serve(failing(func(context.Context) error {
		return &fault.Error{Code: fault.RateLimited, Message: "slower", Argument: "body", RetryAfter: 1500 * time.Millisecond}
	}))
	got := ask(t, api, `{me{displayName}}`)
	if told := got.Errors[0].Extensions; told.Argument != "body" || told.RetryAfterMs != 1500 {
		t.Error(got.body)
	}
}

func TestACallerWhoLeftIsNoError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ctx, leave := context.WithCancel(person.NewContext(t.Context(), ann))
	api := serve(logged(&log), failing(func(ctx context.Context) error {
		leave()
		return fmt.Errorf("list badges: %w", ctx.Err())
	}))
	got := ask(t, api, `{me{displayName}}`, func(r *http.Request) { *r = *r.WithContext(ctx) })
	if wantCode(t, got, fault.Unavailable); log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	api := serve()
	got := ask(t, api, `{badges(first:100){nodes{channel{members(first:1,after:"?"){nodes{id}}}}}}`)
	if wantCode(t, got, fault.BadUserInput); len(got.Errors) != 51 || !strings.HasSuffix(got.Errors[50].Message, " errors more") {
		t.Errorf("%d errors, the last %q", len(got.Errors), got.Errors[len(got.Errors)-1].Message)
	}
	for _, query := range []string{
		`{me{id ` + strings.Repeat("@aa ", 900) + `}}`,
		`{` + repeat(140, func(i int) string { return "x " }) + `}`,
		`{` + strings.Repeat("x", 16_000) + `}`,
		`{me{id}} ` + strings.Repeat("ü", 8_000),
		`{channel(id:{a:"` + strings.Repeat("x", 16_000) + `"}){id}}`,
		`{channel(id:1 ` + repeat(600, func(i int) string { return "a:1 " }) + `){id}}`,
		`query(` + repeat(600, func(i int) string { return fmt.Sprintf("$a%d:A ", i) }) + `){me{id}}`,
	} {
		if got := ask(t, api, query); got.code() == "" || len(got.body) > 12<<10 {
			t.Errorf("%.40s: %d bytes: %.200s", query, len(got.body), got.body)
		}
	}
	got = askWith(t, api, `mutation($i:CreateChannelInput!){createChannel(input:$i){id}}`,
		map[string]any{"i": map[string]any{"kind": strings.Repeat("x", 400_000), "memberIds": []any{}}})
	if wantCode(t, got, "GRAPHQL_VALIDATION_FAILED"); len(got.body) > 1000 {
		t.Errorf("%d bytes", len(got.body))
	}
}

func TestTheLogIsToldOnceOfWhatFailsManyTimes(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	api := serve(logged(&log), failing(func(context.Context) error { return errors.New("secret") }))
	ask(t, api, `{a:me{displayName} b:me{displayName} c:channel(id:1){id}}`)
	if n := strings.Count(log.String(), "level="); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

// What does not fit its type has a code that clients can tell, and a message that names it.
func TestInputThatDoesNotFit(t *testing.T) {
	t.Parallel()
	const (
		input    = fault.BadUserInput
		protocol = fault.Code("GRAPHQL_VALIDATION_FAILED")

		mark    = `mutation($seq:Seq!){markRead(channelId:1 upToSeq:$seq){outcome}}`
		many    = `mutation($c:[ReadCursor!]!){markManyRead(cursors:$c){outcome}}`
		create  = `mutation($i:CreateChannelInput!){createChannel(input:$i){id}}`
		list    = `query($first:Int!){badges(first:$first){storeEpoch}}`
		muted   = `query($b:Boolean!){badges(first:1 includeMuted:$b){storeEpoch}}`
		channel = `query($id:ID!){channel(id:$id){id}}`
	)
	type fields = map[string]any
	number := func(digits string) any { return json.Number(digits) }
	for _, test := range []struct {
		query     string
		variables fields
		code      fault.Code
		names     string
	}{
		{mark, fields{"seq": "7"}, input, "upToSeq "},
		{mark, fields{"seq": 1.5}, input, "upToSeq "},
		{mark, fields{"seq": -1}, input, "upToSeq "},
		{mark, fields{"seq": number("9007199254740992")}, input, "upToSeq "},
		{mark, fields{"seq": number("99999999999999999999")}, input, "upToSeq "},
		{mark, fields{"seq": number("1e400")}, input, "upToSeq "},
		{mark, fields{"seq": true}, input, "upToSeq "},
		{mark, fields{"seq": []any{7}}, input, "upToSeq "},
		{mark, fields{"seq": fields{"a": 7}}, input, "upToSeq "},
		{mark, fields{"seq": nil}, protocol, "$seq "},
		{mark, fields{}, protocol, "$seq "},
		{many, fields{"c": []any{fields{"channelId": "1", "upToSeq": 1}, fields{"channelId": "x", "upToSeq": 1}}}, input, "cursors[1].channelId "},
		{many, fields{"c": []any{fields{"channelId": "1", "upToSeq": "7"}}}, input, "cursors[0].upToSeq "},
		{many, fields{"c": []any{fields{"channelId": "1", "upToSeq": number("99999999999999999999")}}}, input, "cursors[0].upToSeq "},
		{many, fields{"c": []any{fields{"channelId": "1", "upToSeq": nil}}}, protocol, "$c[0].upToSeq "},
		{many, fields{"c": []any{fields{"channelId": "1"}}}, protocol, "$c[0].upToSeq "},
		{many, fields{"c": []any{fields{"channelId": "1", "upToSeq": 1, "secret": 1}}}, protocol, "$c[0].secret "},
		{many, fields{"c": []any{fields{"channelId": "1", "upToSeq": 1, "readEpoch": 1.5}}}, protocol, "$c[0].readEpoch "},
		{many, fields{"c": []any{nil}}, protocol, "$c[0] "},
		{many, fields{"c": 7}, protocol, "$c[0] "},
		{create, fields{"i": fields{"kind": "group", "memberIds": []any{}}}, input, "input.kind "},
		{create, fields{"i": fields{"kind": "SECRET", "memberIds": []any{}}}, protocol, "$i.kind "},
		{create, fields{"i": fields{"kind": 1, "memberIds": []any{}}}, protocol, "$i.kind "},
		{create, fields{"i": fields{"kind": "GROUP", "memberIds": []any{"1", "0"}}}, input, "input.memberIds[1] "},
		{create, fields{"i": fields{"kind": "GROUP", "memberIds": []any{}, "name": fields{}}}, protocol, "$i.name "},
		{create, fields{"i": "x"}, protocol, "$i "},
		{list, fields{"first": number("99999999999999999999")}, protocol, "$first "},
		{list, fields{"first": number("2147483648")}, input, "first "},
		{list, fields{"first": 1.5}, protocol, "$first "},
		{list, fields{"first": "x"}, protocol, "$first "},
		{list, fields{"first": true}, protocol, "$first "},
		{muted, fields{"b": "true"}, protocol, "$b "},
		{channel, fields{"id": 1.5}, input, "id "},
		{channel, fields{"id": true}, protocol, "$id "},
		{channel, fields{"id": number("99999999999999999999")}, input, "id "},

		{`mutation{markRead(channelId:1 upToSeq:99999999999999999999){outcome}}`, nil, protocol, "upToSeq "},
		{`mutation{markRead(channelId:1 upToSeq:-99999999999999999999){outcome}}`, nil, protocol, "upToSeq "},
		{`mutation{markRead(channelId:1 upToSeq:1e400){outcome}}`, nil, protocol, "upToSeq "},
		{`mutation{markManyRead(cursors:[{channelId:1 upToSeq:1} {channelId:1 upToSeq:99999999999999999999}]){outcome}}`, nil, protocol, "cursors[1].upToSeq "},
		{`mutation($s:Seq=99999999999999999999){markRead(channelId:1 upToSeq:$s){outcome}}`, nil, protocol, ""},
		{`mutation{markRead(channelId:1 upToSeq:9007199254740992){outcome}}`, nil, input, "upToSeq "},
		{`mutation{markRead(channelId:1 upToSeq:"7"){outcome}}`, nil, input, "upToSeq "},
		{`mutation{markRead(channelId:1 upToSeq:1.5){outcome}}`, nil, input, "upToSeq "},
		{`mutation{markRead(channelId:1 upToSeq:SECRET){outcome}}`, nil, input, "upToSeq "},
		{`mutation{markRead(channelId:1 upToSeq:null){outcome}}`, nil, protocol, ""},
		{`{channel(id:99999999999999999999){id}}`, nil, protocol, ""},
		{`{badges(first:99999999999999999999){storeEpoch}}`, nil, protocol, ""},
		{`{badges(first:"1"){storeEpoch}}`, nil, protocol, ""},
		{`{badges(first:1.5){storeEpoch}}`, nil, protocol, ""},
		{`mutation{createChannel(input:{kind:SECRET memberIds:[]}){id}}`, nil, protocol, ""},
		{`mutation{createChannel(input:{kind:GROUP memberIds:[] secret:1}){id}}`, nil, protocol, ""},
		{`{me{id @skip(if:99999999999999999999)}}`, nil, protocol, ""},
	} {
		got := askWith(t, serve(), test.query, test.variables)
		wantCode(t, got, test.code)
		if !strings.Contains(got.body, `"message":"`+test.names) {
			t.Errorf("%s %v: %s", test.query, test.variables, got.body)
		}
		for _, e := range got.Errors {
			if named := e.Extensions.Argument; named != "" && named+" " != test.names {
				t.Errorf("%s %v: %s", test.query, test.variables, got.body)
			}
		}
	}
}

func TestAnArgumentThatGqlgenCannotReadIsTheCallersFault(t *testing.T) {
	t.Parallel()
	field := &ast.Field{Alias: "page", Name: "badges"}
	ctx := graphql.WithFieldContext(t.Context(), &graphql.FieldContext{Field: graphql.CollectedField{Field: field}})
	err := graphql.ErrorOnPath(graphql.WithPathContext(ctx, graphql.NewPathWithField("first")), errors.New("secret"))
	got := graph.Present(ctx, err)
	if got.Path.String() != "page" || got.Extensions["code"] != "BAD_USER_INPUT" || got.Extensions["argument"] != "first" ||
		!strings.HasPrefix(got.Message, "first must") || got.Err != nil {
		t.Errorf("%v %v", got, got.Extensions)
	}
}

func TestSuggestionsAreOff(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		`{badgez{storeEpoch}}`, `{badges{storeEpoc}}`, `{badges(firs:1){storeEpoch}}`, `{me}`, `{badges}`, `query($a:Boolea){me{id}}`,
		`{...on Quer{me{id}}}`, `mutation{createChannel(input:{kind:GROP memberIds:[]}){id}}`,
		`mutation{createChannel(input:{kind:GROUP memberIds:[] nam:""}){id}}`, `{badges(first:GROUP){storeEpoch}}`, `{me{id @skp(if:true)}}`,
	} {
		got := ask(t, serve(), query)
		if wantCode(t, got, "GRAPHQL_VALIDATION_FAILED"); strings.Contains(strings.ToLower(got.body), "did you mean") {
			t.Errorf("%s: %s", query, got.body)
		}
	}
}
