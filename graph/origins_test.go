package graph_test

import (
	"net/http"
	"testing"

	"tidemark/graph"
	"tidemark/internal/fault"
)

func TestOrigins(t *testing.T) {
	t.Parallel()
	api := serve(func(cfg *graph.Config) { cfg.Origins = []string{"https://chat.example.com", "http://localhost:3000"} })
	for _, test := range []struct {
		origin  string
		status  int
		allowed string
	}{
		{"", 200, ""},
		{"https://api.example.com", 200, ""},
		{"http://API.example.com", 200, ""},
		{"https://chat.example.com", 200, "https://chat.example.com"},
		{"http://localhost:3000", 200, "http://localhost:3000"},
		{"http://localhost", 403, ""},
		{"http://chat.example.com", 403, ""},
		{"https://chat.example.com.evil.example", 403, ""},
		{"https://evil-api.example.com", 403, ""},
		{"https://api.example.com:8443", 403, ""},
		{"null", 403, ""},
		{"file://", 403, ""},
		{"https://evil.example", 403, ""},
		{"https://evil.example, https://chat.example.com", 403, ""},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			target, body := "https://api.example.com/graphql", `{"query":"{me{id}}"}`
			if method == http.MethodGet {
				target, body = target+"?query={me{id}}", ""
			}
			got := do(t, api, method, target, body, as(ann), with("Origin", test.origin))
			if got.status != test.status || got.header.Get("Access-Control-Allow-Origin") != test.allowed || got.header.Get("Vary") != "Origin" {
				t.Errorf("%s from %q: %d %v", method, test.origin, got.status, got.header)
			}
			if test.status == http.StatusForbidden {
				wantCode(t, got, fault.Forbidden)
			}
		}
	}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	api := serve(func(cfg *graph.Config) { cfg.Origins = []string{"https://chat.example.com"} })
	preflight := func(origin string) answer {
		return do(t, api, http.MethodOptions, "https://api.example.com/graphql", "", with("Origin", origin),
			with("Access-Control-Request-Method", "POST"), with("Access-Control-Request-Headers", "authorization,content-type"))
	}
	got := preflight("https://chat.example.com")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":      "https://chat.example.com",
		"Access-Control-Allow-Methods":     "GET, POST, OPTIONS",
		"Access-Control-Allow-Headers":     "authorization,content-type",
		"Access-Control-Allow-Credentials": "",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	if got.status != http.StatusNoContent {
		t.Errorf("status %d", got.status)
	}
	got = preflight("https://evil.example")
	if got.status != http.StatusForbidden || got.header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// A page may send these without a preflight. Each is refused, allowed origin or not.
func TestRequestsWithoutAPreflightChangeNothing(t *testing.T) {
	t.Parallel()
	changes := &purse{left: 100}
	api := serve(func(cfg *graph.Config) {
		cfg.Origins = []string{"https://chat.example.com"}
		cfg.MutationLimiter = changes
	})
	const mutation = `mutation{markRead(channelId:1 upToSeq:1){outcome}}`
	const multipart = "--x\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n{\"query\":\"" + mutation + "\"}\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"map\"\r\n\r\n{}\r\n--x--\r\n"
	for contentType, body := range map[string]string{
		"application/x-www-form-urlencoded": "query=" + mutation,
		"text/plain":                        `{"query":"` + mutation + `"}`,
		"text/plain; application/json":      `{"query":"` + mutation + `"}`,
		"multipart/form-data; boundary=x":   multipart,
		"":                                  `{"query":"` + mutation + `"}`,
	} {
		for _, origin := range []string{"", "https://chat.example.com", "https://evil.example"} {
			got := do(t, api, http.MethodPost, "https://api.example.com/graphql", body, as(ann),
				with("Content-Type", contentType), with("Origin", origin))
			if got.status < 400 || got.Data != nil {
				t.Errorf("%s from %q: %d %s", contentType, origin, got.status, got.body)
			}
		}
	}
	if changes.asked != 0 {
		t.Errorf("%d of them were about to be executed", changes.asked)
	}
}
