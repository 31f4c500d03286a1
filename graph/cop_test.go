package graph_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// The checks of graphql-cop, a scanner that operators run against what is reachable from outside. The answers are
// the ones that it takes for safe, with introspection on as well.
func TestWhatGraphQLCopLooksFor(t *testing.T) {
	t.Parallel()
	const circular = `query cop { __schema { types { fields { type { fields { type { fields { type { fields { type { name } } } } } } } } } } }`
	api := serve(introspective)
	cop := func(query string) answer { return ask(t, api, query) }
	get := func(parameters string, options ...func(*http.Request)) answer {
		return do(t, api, http.MethodGet, "/graphql?"+parameters, "", options...)
	}
	for check, got := range map[string]answer{
		"alias overloading":       cop(`query cop { ` + repeat(101, func(i int) string { return "a" + strings.Repeat("_", i) + ":__typename " }) + `}`),
		"array-based batching":    do(t, api, http.MethodPost, "/graphql", `[`+strings.Repeat(`{"query":"query cop { __typename }"},`, 9)+`{"query":"query cop { __typename }"}]`),
		"circular introspection":  cop(circular),
		"directive overloading":   cop(`query cop { __typename ` + strings.Repeat("@aa", 500) + ` }`),
		"field duplication":       cop(`query cop { ` + strings.Repeat("__typename \n", 500) + `}`),
		"field suggestions":       cop(`query cop { __schema { directive } }`),
		"GraphQL IDE":             get("query={__typename}", with("Accept", "text/html")),
		"introspection":           ask(t, serve(), `query cop { __schema { types { name fields { name } } } }`),
		"GET of another origin":   get("query="+url.QueryEscape(`query cop { __typename }`), with("Origin", "https://evil.example")),
		"mutation over GET":       get("query=" + url.QueryEscape(`mutation cop { __typename }`)),
		"POST of an encoded form": do(t, api, http.MethodPost, "/graphql", "query=query+cop+%7B__typename%7D", with("Content-Type", "application/x-www-form-urlencoded")),
		"unhandled error":         cop(`qwerty cop { abc }`),
	} {
		if got.code() == "" || got.Data != nil || len(got.body) > mostBytes {
			t.Errorf("%s: %d %.300s", check, got.status, got.body)
		}
		for _, leak := range []string{"Did you mean", "exception", "stack", "tracing", "<html"} {
			if strings.Contains(got.body, leak) {
				t.Errorf("%s: %s", check, got.body)
			}
		}
	}
	traced := do(t, api, http.MethodPost, "/graphql", `{"query":"query cop { __typename }","extensions":{"tracing":true}}`, with("X-Apollo-Tracing", "1"))
	wantData(t, traced, `{"__typename":"Query"}`)
}
