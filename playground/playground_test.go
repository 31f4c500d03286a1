package playground

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, handler http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	return answer
}

func TestPageLetsOnlyItsOwnScriptsRun(t *testing.T) {
	handler := Handler(Config{Endpoint: "/graphql", SubscriptionEndpoint: "wss://live.example/graphql"})
	scripts := regexp.MustCompile(`<script src="[^"]+"[^>]* nonce="(\w+)"></script>`)
	seen := map[string]bool{}
	for range 2 {
		answer := get(t, handler, "/")
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("got %d %s", answer.Code, answer.Header().Get("Content-Type"))
		}
		found := scripts.FindAllStringSubmatch(answer.Body.String(), -1)
		if len(found) != 4 {
			t.Fatalf("got %d scripts with a nonce, want 4:\n%s", len(found), answer.Body)
		}
		policy := answer.Header().Get("Content-Security-Policy")
		for _, script := range found {
			if !strings.Contains(policy, "script-src 'nonce-"+script[1]+"';") {
				t.Errorf("the policy has not the nonce %s: %s", script[1], policy)
			}
			seen[script[1]] = true
		}
		for _, want := range []string{"default-src 'none'", "connect-src 'self' wss://live.example;", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("the policy lacks %q: %s", want, policy)
			}
		}
		if got := answer.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("a page with a token is cached: %q", got)
		}
	}
	if len(seen) != 2 {
		t.Errorf("two pages had %d nonces, want one each", len(seen))
	}
}

func TestPageCarriesTheSettings(t *testing.T) {
	const token = `a"</script><script>alert(1)</script>` // nobody's token, but it must do no harm
	body := get(t, Handler(Config{Endpoint: "/graphql", SubscriptionEndpoint: "/live", Token: token}), "/").Body.String()
	if strings.Contains(body, "alert(1)</script>") {
		t.Error("the token ends its script")
	}
	got := pageSettings(t, body)
	var headers map[string]string
	if err := json.Unmarshal([]byte(got.Headers), &headers); err != nil {
		t.Fatalf("the headers editor would hold no JSON: %v", err)
	}
	if headers["Authorization"] != "Bearer "+token {
		t.Errorf("got headers %v", headers)
	}
	if got.Endpoint != "/graphql" || got.SubscriptionEndpoint != "/live" {
		t.Errorf("got endpoints %q and %q", got.Endpoint, got.SubscriptionEndpoint)
	}
	if len(got.Examples) != len(examples()) {
		t.Errorf("got %d examples, want %d", len(got.Examples), len(examples()))
	}
}

func TestNothingElseIsServed(t *testing.T) {
	handler := Handler(Config{})
	for _, target := range []string{"/nothing", "/assets/", "/assets/README.md", "/assets/index.html"} {
		if got := get(t, handler, target).Code; got != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", target, got)
		}
	}
}

func TestAssetsAreServed(t *testing.T) {
	built := fstest.MapFS{"graphiql.min.js": {Data: []byte("// graphiql")}}
	handler := newHandler(Config{}, built)
	for target, contentType := range map[string]string{
		"/assets/playground.js":   "text/javascript; charset=utf-8",
		"/assets/playground.css":  "text/css; charset=utf-8",
		"/assets/graphiql.min.js": "text/javascript; charset=utf-8",
	} {
		answer := get(t, handler, target)
		if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != contentType {
			t.Errorf("%s: got %d %s", target, answer.Code, answer.Header().Get("Content-Type"))
		}
		again := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		again.Header.Set("If-None-Match", answer.Header().Get("ETag"))
		unchanged := httptest.NewRecorder()
		handler.ServeHTTP(unchanged, again)
		if unchanged.Code != http.StatusNotModified {
			t.Errorf("%s: asked again, got %d, want 304", target, unchanged.Code)
		}
	}
}

func TestWhatWasNotBuiltInComesFromTheCDN(t *testing.T) {
	body := get(t, newHandler(Config{}, fstest.MapFS{"graphiql.min.js": {}}), "/").Body.String()
	for _, file := range files() {
		source := `"` + file.cdn() + `"`
		if file.name() == "graphiql.min.js" {
			source = `"assets/graphiql.min.js"`
		}
		integrity := strings.ReplaceAll(file.integrity, "+", "&#43;")
		if !regexp.MustCompile(`(src|href)=` + regexp.QuoteMeta(source) + ` integrity="` + regexp.QuoteMeta(integrity) + `"`).MatchString(body) {
			t.Errorf("the page does not load %s with its integrity", source)
		}
	}
}

// TestFilesAreWhatTheLockSays holds together the versions that npm fetches, those that the CDN is asked for, and what
// is in them.
func TestFilesAreWhatTheLockSays(t *testing.T) {
	text, err := os.ReadFile("assets-src/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for _, file := range files() {
		if got := lock.Packages["node_modules/"+file.npm].Version; got != file.version {
			t.Errorf("%s: the lock file has version %q, files() %q", file.npm, got, file.version)
		}
		body, err := fs.ReadFile(builtIn(), file.name())
		if err != nil {
			t.Errorf("%v\n%s", err, needBuild)
			continue
		}
		sum := sha512.Sum384(body)
		if got := "sha384-" + base64.StdEncoding.EncodeToString(sum[:]); got != file.integrity {
			t.Errorf("%s: integrity is %s, files() has %s", file.name(), got, file.integrity)
		}
	}
}

// needBuild says what to do about files that were not there at build time.
const needBuild = "GraphiQL is not built in. Run `make setup` once (it needs npm), or `make test`."

func pageSettings(t *testing.T, body string) settings {
	t.Helper()
	found := regexp.MustCompile(`(?s)<script type="application/json" id="settings">(.*?)</script>`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("the page has no settings:\n%s", body)
	}
	var s settings
	if err := json.Unmarshal([]byte(found[1]), &s); err != nil {
		t.Fatal(err)
	}
	return s
}
