package graph_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tidemark/graph"
	"tidemark/internal/fault"
)

const graphqlJSON = "application/graphql-response+json"

func TestMethodsAndMediaTypes(t *testing.T) {
	t.Parallel()
	api := serve()
	for _, test := range []struct {
		method, contentType, body string
		status                    int
		allow                     string
	}{
		{http.MethodPost, "application/json", `{"query":"{__typename}"}`, 200, ""},
		{http.MethodPost, "Application/JSON; charset=utf-8", `{"query":"{__typename}","more":[1]}`, 200, ""},
		{http.MethodPost, "application/x-www-form-urlencoded", `query={__typename}`, 415, ""},
		{http.MethodPost, "text/plain", `{"query":"{__typename}"}`, 415, ""},
		{http.MethodPost, "multipart/form-data; boundary=x", "--x--", 415, ""},
		{http.MethodPost, "application/graphql", `{__typename}`, 415, ""},
		{http.MethodPost, "", `{"query":"{__typename}"}`, 415, ""},
		{http.MethodPut, "application/json", `{"query":"{__typename}"}`, 405, "GET, POST, OPTIONS"},
		{http.MethodDelete, "", "", 405, "GET, POST, OPTIONS"},
		{http.MethodHead, "", "", 405, "GET, POST, OPTIONS"},
		{http.MethodOptions, "", "", 204, "GET, POST, OPTIONS"},
		{http.MethodGet, "", "", 400, ""},
	} {
		got := do(t, api, test.method, "/graphql", test.body, with("Content-Type", test.contentType))
		if got.status != test.status || got.header.Get("Allow") != test.allow {
			t.Errorf("%s %s: %d, Allow %q", test.method, test.contentType, got.status, got.header.Get("Allow"))
		}
		if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %v", test.method, test.contentType, got.header)
		}
		if test.status >= 400 && got.code() == "" {
			t.Errorf("%s %s: %s", test.method, test.contentType, got.body)
		}
	}
}

func TestAcceptDecidesTheMediaTypeAndTheStatus(t *testing.T) {
	t.Parallel()
	api := serve()
	for accept, want := range map[string]string{
		"":                                      "application/json",
		"*/*":                                   "application/json",
		"application/*":                         "application/json",
		"text/html, */*;q=0.1":                  "application/json",
		graphqlJSON:                             graphqlJSON,
		graphqlJSON + ", */*;q=0.5":             graphqlJSON,
		graphqlJSON + ",application/json;q=0.9": graphqlJSON,
		graphqlJSON + ";q=0.5,application/json": "application/json",
		"application/json, " + graphqlJSON:      "application/json",
		"text/html":                             "",
		"application/json;q=0":                  "",
		";":                                     "",
	} {
		got := do(t, api, http.MethodPost, "/graphql", `{"query":"{nothing}"}`, with("Accept", accept))
		status := map[string]int{"application/json": 200, graphqlJSON: 400, "": 406}[want]
		if want == "" {
			want = "application/json"
		}
		if got.status != status || got.header.Get("Content-Type") != want+"; charset=utf-8" {
			t.Errorf("%q: %d %s", accept, got.status, got.header.Get("Content-Type"))
		}
	}
}

func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `null`, `7`, `"{__typename}"`, `[]`, `{`, `{}`, `{"query":""}`, `{"query":null}`, `{"query":7}`, `{"query":["secret"]}`,
		`{"query":"{__typename}"} {"query":"{__typename}"}`, `{"query":"{__typename}"}]`, `{"query":"{__typename}","variables":"secret"}`,
		`{"query":"{__typename}","variables":[]}`, `{"query":"{__typename}","operationName":7}`, `{"query":"{__typename}","extensions":7}`,
		`{"query":"{__typename}","extensions":{"persistedQuery":7`, strings.Repeat(`{"query":`, 20_000),
		`{"query":"{__typename}","variables":{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`,
	} {
		got := do(t, serve(), http.MethodPost, "/graphql", body, with("Content-Type", "application/json"))
		if wantCode(t, got, fault.BadUserInput); got.status != http.StatusBadRequest || len(got.body) > 300 || strings.Contains(got.body, "secret") {
			t.Errorf("%.60s: %d %s", body, got.status, got.body)
		}
	}
	batch := do(t, serve(), http.MethodPost, "/graphql", `[{"query":"{__typename}"},{"query":"{__typename}"}]`)
	if batch.status != http.StatusBadRequest || !strings.Contains(batch.body, "one by one") {
		t.Errorf("%d %s", batch.status, batch.body)
	}
}

func TestGetIsForQueries(t *testing.T) {
	t.Parallel()
	api := serve()
	target := func(parameters ...string) string {
		in := url.Values{}
		for i := 0; i < len(parameters); i += 2 {
			in.Set(parameters[i], parameters[i+1])
		}
		return "/graphql?" + in.Encode()
	}
	got := do(t, api, http.MethodGet, target("query", `query A($id:ID!){channel(id:$id){id}} query B{me{id}}`,
		"operationName", "A", "variables", `{"id":"9223372036854775807"}`), "", as(ann))
	wantData(t, got, `{"channel":{"id":"9223372036854775807"}}`)

	for _, query := range []string{`mutation{__typename}`, `mutation{markRead(channelId:1 upToSeq:1){outcome}}`} {
		got := do(t, api, http.MethodGet, target("query", query), "", as(ann))
		if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != http.MethodPost || got.Data != nil {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	for _, bad := range []string{
		"/graphql?query=%zz", target("query", "{me{id}}", "variables", "[]"), target("query", "{me{id}}", "extensions", "{"), target("variables", "{}"),
	} {
		if got := do(t, api, http.MethodGet, bad, "", as(ann)); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, got.status, got.body)
		}
	}
	if got := do(t, api, http.MethodGet, target("query", strings.Repeat(" ", 600<<10)), ""); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestTheSizeOfABodyIsBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(serve())
	defer server.Close()
	for name, body := range map[string]string{
		"a long value": `{"query":"{__typename}","variables":{"a":"` + strings.Repeat("secret", 5<<20) + `"}}`,
		"blanks":       `{"query":"{__typename}"}` + strings.Repeat(" ", 600<<10),
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(name, err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(name, err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s", name, response.Status)
		}
	}
	small := serve(func(cfg *graph.Config) { cfg.Limits.BodyBytes = 30 })
	got := do(t, small, http.MethodPost, "/graphql", `{"query":"{__typename}","secret":1}`)
	if wantCode(t, got, fault.QueryTooLarge); strings.Contains(got.body, "secret") {
		t.Error(got.body)
	}
}

func TestTheLargestLegalRequestsFit(t *testing.T) {
	t.Parallel()
	api := serve()
	const query = `mutation Send($body: String!) { sendMessage(channelId: "9223372036854775807", body: $body) { message { body } } }`
	body := fmt.Sprintf(`{"query":%q,"variables":{"body":"%s"}}`, query, strings.Repeat(`\uD83D\uDE00`, 20_000))
	got := do(t, api, http.MethodPost, "/graphql", body, as(ann))
	wantData(t, got, `{"sendMessage":{"message":{"body":"`+strings.Repeat("😀", 20_000)+`"}}}`)

	cursors := make([]any, 1000)
	for i := range cursors {
		cursors[i] = map[string]any{"channelId": "9223372036854775807", "upToSeq": 1<<53 - 1, "readEpoch": 1<<31 - 1}
	}
	got = askWith(t, api, `mutation($cursors: [ReadCursor!]!) { markManyRead(cursors: $cursors) { outcome badge { `+everyBadgeField+` } } }`,
		map[string]any{"cursors": cursors})
	if got.code() != "" || strings.Count(got.body, "ADVANCED") != 1000 {
		t.Errorf("%.300s", got.body)
	}
}

func TestDataGoesOutAsItIs(t *testing.T) {
	t.Parallel()
	got := ask(t, serve(), `{channel(id:1){name} __typename}`)
	wantData(t, got, "{\"channel\":{\"name\":\"one \u2028 <b>\"},\"__typename\":\"Query\"}")
	if got.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
		t.Errorf("Content-Length %s of %d bytes", got.header.Get("Content-Length"), len(got.body))
	}
	got = ask(t, serve(), `{a:channel(id:1){name} b:channel(id:0){name}}`, with("Accept", graphqlJSON))
	if got.status != http.StatusOK || !strings.HasPrefix(got.body, `{"errors":[`) || !strings.HasSuffix(got.body, "],\"data\":{\"a\":{\"name\":\"one \u2028 <b>\"},\"b\":null}}") {
		t.Errorf("%d %s", got.status, got.body)
	}
	got = ask(t, serve(), `{badges(first:0){storeEpoch}}`, with("Accept", graphqlJSON))
	if got.status != http.StatusOK || string(got.Data) != "null" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
