package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/auth"
	"tidemark/internal/person"
)

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc":     "abc",
		"bearer abc":     "abc",
		"BEARER   abc  ": "abc",
		"":               "",
		"Bearer":         "",
		"Bearer ":        "",
		"abc":            "",
		"Basic abc":      "",
		"Bearerabc":      "",
		"Bearer a b":     "",
		"Bearer\tabc":    "",
	} {
		if got, ok := auth.Bearer(header); got != want || ok != (want != "") {
			t.Errorf("Bearer(%q) = %q, %v, want %q", header, got, ok, want)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, header := range []string{"", "Bearer abc", "bearer  a ", "Bearer a b", "Basic YTpi", "Bearer \x00", "Bearer\u00a0a"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, ok := auth.Bearer(header)
		if ok != (token != "") || strings.ContainsAny(token, " \t") {
			t.Fatalf("Bearer(%q) = %q, %v", header, token, ok)
		}
		if again, ok2 := auth.Bearer("bEARER " + token); ok && (again != token || !ok2) {
			t.Errorf("Bearer(%q) = %q, which alone gives %q", header, token, again)
		}
	})
}

func TestMiddleware(t *testing.T) {
	v := newVerifier(t, auth.Config{Secret: secret})
	good := withSecret(t, jwt.MapClaims{"sub": "7", "exp": in(time.Hour)})
	expired := withSecret(t, jwt.MapClaims{"sub": "7", "exp": in(-time.Hour)})

	for name, c := range map[string]struct{ header, refusal string }{
		"good":           {"Bearer " + good, ""},
		"none":           {"", "Authorization: Bearer TOKEN"},
		"another scheme": {"Basic YTpi", "Authorization: Bearer TOKEN"},
		"expired":        {"bearer " + expired, "expired"},
		"malformed":      {"Bearer x", "not a well-formed JWT"},
	} {
		t.Run(name, func(t *testing.T) {
			served := false
			handler := v.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				served = true
				viewer, err := auth.ViewerFrom(r.Context())
				_, inContext := person.FromContext(r.Context())
				expiry, hasExpiry := auth.Expiry(r.Context())
				if inContext != (c.refusal == "") || hasExpiry != inContext {
					t.Errorf("viewer in the context: %v, expiry: %v", inContext, hasExpiry)
				}
				if c.refusal != "" {
					wantRefusal(t, err, c.refusal)
					return
				}
				if err != nil || viewer != (person.Viewer{ID: 7, Role: person.RoleUser}) || !expiry.After(time.Now()) {
					t.Errorf("got %+v until %v, %v", viewer, expiry, err)
				}
			}))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/graphql", nil)
			r.Header.Set("Authorization", c.header)
			handler.ServeHTTP(httptest.NewRecorder(), r)
			if !served {
				t.Error("the request was not passed on")
			}
		})
	}
}
