package graph_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"tidemark/graph"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
)

func TestConfigNamesTheFieldAtFault(t *testing.T) {
	t.Parallel()
	valid := graph.Config{Resolver: domain{}.resolver(), Origins: []string{"https://chat.example.com", "http://localhost:3000"}}
	if err := valid.Validate(); err != nil {
		t.Errorf("a valid configuration: %v", err)
	}
	for field, spoil := range map[string]func(*graph.Config){
		"Resolver":                             func(c *graph.Config) { c.Resolver = nil },
		"RequestTimeout":                       func(c *graph.Config) { c.RequestTimeout = -1 },
		"Limits.Tokens":                        func(c *graph.Config) { c.Limits.Tokens = -1 },
		"Limits.BodyBytes":                     func(c *graph.Config) { c.Limits.BodyBytes = -1 },
		"MaxOperations":                        func(c *graph.Config) { c.Sockets.MaxOperations = -1 },
		"MaxPerPerson":                         func(c *graph.Config) { c.Sockets.MaxPerPerson = -1 },
		"InitTimeout":                          func(c *graph.Config) { c.Sockets.InitTimeout = -1 },
		"PingEvery":                            func(c *graph.Config) { c.Sockets.PingEvery = -1 },
		"WriteTimeout":                         func(c *graph.Config) { c.Sockets.WriteTimeout = -1 },
		"Origins":                              func(c *graph.Config) { c.Origins = []string{"chat.example.com"} },
		`Origins: "https://chat.example.com/"`: func(c *graph.Config) { c.Origins = []string{"https://chat.example.com/"} },
		`Origins: "*"`:                         func(c *graph.Config) { c.Origins = []string{"*"} },
	} {
		cfg := valid
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestOperationsNeedAViewer(t *testing.T) {
	t.Parallel()
	api := serve(introspective)
	nobody := func(r *http.Request) { *r = *r.WithContext(context.Background()) }
	for _, query := range []string{
		`{__typename}`, `{__schema{queryType{name}}}`, `{__type(name:"Badge"){name}}`, `mutation{__typename}`,
		`{...F} fragment F on Query{a:__typename}`, `{__typename me @skip(if:true){id}}`,
	} {
		if got := ask(t, api, query, nobody); got.status != http.StatusOK || got.code() != "" {
			t.Errorf("%s: %s", query, got.body)
		}
	}
	for _, query := range []string{
		`{me{id}}`, `{__typename me{id}}`, `{...F} fragment F on Query{me{id}}`, `{...on Query{me{id}}}`,
		`mutation{markRead(channelId:1 upToSeq:1){outcome}}`,
	} {
		got := ask(t, api, query, nobody)
		wantCode(t, got, fault.Unauthenticated)
		if got.status != http.StatusOK || got.Data != nil || !strings.Contains(got.Errors[0].Message, "Authorization: Bearer") {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	got := ask(t, api, `{me{id}}`, nobody, with("Accept", "application/graphql-response+json"))
	if got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%d %v", got.status, got.header)
	}
	wantData(t, ask(t, api, `{me{id displayName}}`), `{"me":{"id":"7","displayName":"Ann"}}`)
}

func TestIntrospectionIsOffByDefault(t *testing.T) {
	t.Parallel()
	for _, query := range []string{`{__schema{types{name}}}`, `{__type(name:"Badge"){name}}`, `{me{id} ...F} fragment F on Query{__schema{types{name}}}`} {
		got := ask(t, serve(), query)
		if wantCode(t, got, "GRAPHQL_VALIDATION_FAILED"); got.Data != nil || !strings.Contains(got.body, "introspection is switched off") {
			t.Errorf("%s: %s", query, got.body)
		}
	}
	wantData(t, ask(t, serve(introspective), `{__type(name:"Badge"){name}}`), `{"__type":{"name":"Badge"}}`)
}

func TestNothingIsDeferred(t *testing.T) {
	t.Parallel()
	wantCode(t, ask(t, serve(), `{me{id ...@defer{displayName}}}`), "GRAPHQL_VALIDATION_FAILED")
	if got := ask(t, serve(introspective), `{__schema{directives{name}}}`); strings.Contains(got.body, "defer") || !strings.Contains(got.body, "skip") {
		t.Error(got.body)
	}
}

func TestWelcomeComesOncePerOperation(t *testing.T) {
	t.Parallel()
	var welcomed []person.Viewer
	var failure error
	api := serve(func(cfg *graph.Config) {
		cfg.Welcome = func(_ context.Context, v person.Viewer) error {
			welcomed = append(welcomed, v)
			return failure
		}
	})
	ask(t, api, `{__typename}`)
	ask(t, api, `{a:me{id} b:me{id} badges(first:3){nodes{id}}}`)
	if !slices.Equal(welcomed, []person.Viewer{ann}) {
		t.Errorf("welcomed %v, want Ann once", welcomed)
	}
	failure = fault.NotAvailable(errors.New("secret"))
	if got := ask(t, api, `{me{id}}`); len(got.Errors) > 0 {
		t.Errorf("who only reads need not be known: %s", got.body)
	}
	got := ask(t, api, `mutation{forgetDevice(deviceId:"phone")}`)
	if wantCode(t, got, fault.Unavailable); got.Data != nil || strings.Contains(got.body, "secret") {
		t.Errorf("%s", got.body)
	}
}

// purse admits changes as long as there is something in it.
type purse struct{ left, asked int }

func (p *purse) Allow(_ context.Context, user id.User, cost int) error {
	p.asked++
	if user != ann.ID || cost > p.left {
		return &fault.Error{Code: fault.RateLimited, Message: "too many changes", RetryAfter: 1500 * time.Microsecond}
	}
	p.left -= cost
	return nil
}

func TestMutationsAreLimitedByTheirFields(t *testing.T) {
	t.Parallel()
	limiter := &purse{left: 3}
	api := serve(func(cfg *graph.Config) { cfg.MutationLimiter = limiter })
	const mark = `markRead(channelId:1 upToSeq:1){outcome} `
	ask(t, api, `{me{id}}`)
	ask(t, api, `mutation{__typename}`)
	ask(t, api, `mutation{markRead(channelId:1 upToSeq:-1 noSuch:1){outcome}}`)
	do(t, api, http.MethodGet, "/graphql?query=mutation%7B"+strings.ReplaceAll(mark, " ", "%20")+"%7D", "", as(ann))
	if limiter.asked != 0 {
		t.Errorf("asked %d times for what changes nothing", limiter.asked)
	}
	if got := ask(t, api, `mutation{__typename a:`+mark+`...F} fragment F on Mutation{b:`+mark+`b:`+mark+`}`); got.code() != "" || limiter.left != 1 {
		t.Errorf("%s, and %d left of 3 after two changes", got.body, limiter.left)
	}
	got := ask(t, api, `mutation{a:`+mark+`b:`+mark+`}`, with("Accept", "application/graphql-response+json"))
	if wantCode(t, got, fault.RateLimited); got.Data != nil || got.status != http.StatusTooManyRequests || got.Errors[0].Extensions.RetryAfterMs != 2 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestTheTimeOfAnOperationIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := serve(failing(func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("list badges: %w", ctx.Err())
		}))
		start := time.Now()
		got := ask(t, api, `{badges{storeEpoch}}`)
		wantCode(t, got, fault.Unavailable)
		if took := time.Since(start); took != 5*time.Second || string(got.Data) != "null" {
			t.Errorf("after %v: %s", took, got.body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		api := serve(func(cfg *graph.Config) {
			cfg.RequestTimeout = time.Second
			cfg.Welcome = func(ctx context.Context, _ person.Viewer) error {
				<-ctx.Done()
				return nil
			}
		})
		got := ask(t, api, `{me{id}}`, with("Accept", "application/graphql-response+json"))
		if wantCode(t, got, fault.Unavailable); got.status != http.StatusServiceUnavailable || got.Data != nil {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

func TestPersistedQueries(t *testing.T) {
	t.Parallel()
	api := serve()
	const query = `{me{id}}`
	sum := sha256.Sum256([]byte(query))
	send := func(query string, version any, hash string, options ...func(*http.Request)) answer {
		body := params{Query: query, Extensions: map[string]any{"persistedQuery": map[string]any{"version": version, "sha256Hash": hash}}}
		return do(t, api, http.MethodPost, "/graphql", body.json(t), append(options, as(ann))...)
	}
	hash := hex.EncodeToString(sum[:])
	for _, accept := range []string{"application/json", "application/graphql-response+json"} {
		got := send("", 1, hash, with("Accept", accept))
		if wantCode(t, got, "PERSISTED_QUERY_NOT_FOUND"); got.status != http.StatusOK || got.Errors[0].Message != "PersistedQueryNotFound" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	wantCode(t, send(`{me{displayName}}`, 1, hash), fault.BadUserInput)
	wantCode(t, send("", 1, hash), "PERSISTED_QUERY_NOT_FOUND")
	wantCode(t, send("", 2, hash), fault.BadUserInput)
	wantCode(t, send("", []int{}, hash), fault.BadUserInput)
	wantData(t, send(query, 1, hash), `{"me":{"id":"7"}}`)
	wantData(t, send("", 1, hash), `{"me":{"id":"7"}}`)

	got := do(t, api, http.MethodGet, `/graphql?extensions={"persistedQuery":{"version":1,"sha256Hash":"`+hash+`"}}`, "", as(ann))
	wantData(t, got, `{"me":{"id":"7"}}`)
}

// witness is an extension that notes what it sees.
type witness struct{ seen *[]string }

func (witness) ExtensionName() string                   { return "Witness" }
func (witness) Validate(graphql.ExecutableSchema) error { return nil }

func (w witness) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	respond := next(ctx)
	return func(ctx context.Context) *graphql.Response {
		response := respond(ctx)
		*w.seen = append(*w.seen, fmt.Sprint("operation ", codesOf(response)))
		return response
	}
}

func (w witness) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	*w.seen = append(*w.seen, fmt.Sprint("response ", codesOf(response)))
	return response
}

func codesOf(response *graphql.Response) []any {
	var codes []any
	for _, e := range response.Errors {
		codes = append(codes, e.Extensions["code"])
	}
	return codes
}

func TestExtensionsSeeWhatClientsSee(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		`{me{id}}`: {"response []", "operation []"},
		`{me{no}}`: {"response [GRAPHQL_VALIDATION_FAILED]"},
		`mutation{markRead(channelId:1 upToSeq:1){outcome}}`: {"operation [RATE_LIMITED]"},
		`{channel(id:"x"){id}}`:                              {"response [BAD_USER_INPUT]", "operation [BAD_USER_INPUT]"},
	} {
		var seen []string
		ask(t, serve(func(cfg *graph.Config) {
			cfg.Extensions = []graphql.HandlerExtension{witness{&seen}}
			cfg.MutationLimiter = &purse{}
		}), query)
		if !slices.Equal(seen, want) {
			t.Errorf("%s: %q, want %q", query, seen, want)
		}
	}
}

func TestPanicsAreLoggedAndNotShown(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	api := serve(logged(&log), failing(func(context.Context) error { panic("secret") }))
	got := ask(t, api, `query Start{me{displayName}}`)
	if wantCode(t, got, fault.Internal); got.Errors[0].Message != "internal error" || strings.Contains(got.body, "secret") {
		t.Error(got.body)
	}
	for _, want := range []string{"level=ERROR", "msg=panic", "operation=Start", "path=me.displayName", "panic=secret", "main_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "level="); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
}

func TestPanicsBeforeExecutionAreAnsweredToo(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	api := serve(logged(&log), func(cfg *graph.Config) {
		cfg.Welcome = func(context.Context, person.Viewer) error { panic("secret") }
	})
	got := ask(t, api, `{me{id}}`)
	if wantCode(t, got, fault.Internal); got.status != http.StatusInternalServerError || strings.Contains(got.body, "secret") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if !strings.Contains(log.String(), "panic=secret") {
		t.Error(log.String())
	}
}
