package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"tidemark/web"
)

// runNPM runs a script of the package, whose tests are in TypeScript.
func runNPM(t *testing.T, script string) {
	t.Helper()
	if _, err := os.Stat("node_modules/vite"); err != nil {
		t.Fatalf("%v: run make setup", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "run", "--silent", script)
	cmd.Env = append(os.Environ(), "CI=true", "NO_COLOR=1")
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("npm run %s: %v\n%s", script, err, out)
	}
}

func TestKit(t *testing.T) { runNPM(t, "test") }

func TestTypes(t *testing.T) { runNPM(t, "check") }

func get(t *testing.T, handler http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return answer
}

func TestPagesAreBuiltIn(t *testing.T) {
	settings := web.Settings{People: []web.Person{{ID: "1", Name: `</script><script>alert("Ada")`, Token: "a.b.c"}}}
	for path, page := range map[string]http.Handler{"/demo": web.Demo(settings), "/inspect": web.Inspector(web.Settings{})} {
		answer := get(t, page, path)
		body := answer.Body.String()
		if answer.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", path, answer.Code, body)
		}
		if strings.Contains(body, "alert(\"Ada\")") || path == "/demo" && !strings.Contains(body, `"token":"a.b.c"`) {
			t.Errorf("%s has the settings as\n%s", path, body)
		}
		assets := regexp.MustCompile(`(?:src|href)="(/web/[^"]+)"`).FindAllStringSubmatch(body, -1)
		if len(assets) < 2 {
			t.Errorf("%s loads %v", path, assets)
		}
		for _, asset := range assets {
			got := get(t, web.Assets(), asset[1])
			if got.Code != http.StatusOK || !strings.Contains(got.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d, %v", asset[1], got.Code, got.Header())
			}
		}
	}
	if got := get(t, web.Assets(), "/web/assets/none.js"); got.Code != http.StatusNotFound {
		t.Errorf("what there is not is %d", got.Code)
	}
}
