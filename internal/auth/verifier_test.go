package auth_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"tidemark/internal/auth"
	"tidemark/internal/fault"
	"tidemark/internal/person"
)

const secret = "a secret of tests that is longer than thirty-two bytes"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newVerifier(t *testing.T, cfg auth.Config) *auth.Verifier {
	t.Helper()
	v, err := auth.NewVerifier(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

// in is a NumericDate that is d from now.
func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func signed(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(method, claims).SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func withSecret(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	return signed(t, jwt.SigningMethodHS256, []byte(secret), claims)
}

// wantRefusal fails unless err is Unauthenticated and its message, the part that a client sees, contains want.
func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault", err)
	}
	if f.Code != fault.Unauthenticated || !strings.Contains(f.Message, want) {
		t.Errorf("got %s %q, want %s with %q", f.Code, f.Message, fault.Unauthenticated, want)
	}
}

func TestVerifyReturnsWhatSignSigned(t *testing.T) {
	cfg := auth.Config{Secret: secret, Issuer: "https://chat.example", Audience: "tidemark"}
	v := newVerifier(t, cfg)
	for _, want := range []person.Viewer{
		{ID: 1, Role: person.RoleUser},
		{ID: 1<<63 - 1, Name: "Zoë 👩‍👩‍👧", Role: person.RoleSupport},
		{ID: 42, Name: "importer", Role: person.RoleService},
	} {
		token, err := auth.Sign(cfg, want, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got, expiry, err := v.Verify(t.Context(), token)
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if left := time.Until(expiry); left < time.Hour || left > time.Hour+31*time.Second {
			t.Errorf("accepted for another %v, want an hour and the leeway", left)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	cfg := auth.Config{Secret: secret, Issuer: "https://chat.example", Audience: "tidemark"}
	v := newVerifier(t, cfg)
	// with returns good claims with one of them changed, or left out where the value is nil.
	with := func(claim string, value any) jwt.MapClaims {
		claims := jwt.MapClaims{"sub": "7", "iss": cfg.Issuer, "aud": []string{"other", "tidemark"}, "exp": in(time.Hour)}
		if claims[claim] = value; value == nil {
			delete(claims, claim)
		}
		return claims
	}
	good := withSecret(t, with("", nil))
	if _, _, err := v.Verify(t.Context(), good); err != nil {
		t.Fatalf("the claims that the cases start from: %v", err)
	}
	header, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	null := signed(t, jwt.SigningMethodHS256, []byte(secret), nil)

	for name, c := range map[string]struct{ token, want string }{
		"empty":                 {"", "not a well-formed JWT"},
		"no JWT":                {"session-cookie", "not a well-formed JWT"},
		"two parts":             {header + "." + payload, "not a well-formed JWT"},
		"four parts":            {good + ".", "not a well-formed JWT"},
		"not base64":            {header + ".$." + signature, "not a well-formed JWT"},
		"too long":              {strings.Repeat("a", 8<<10+1), "longer than 8192 bytes"},
		"null claims":           {null, "no expiry"},
		"alg none":              {signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, with("", nil)), "not signed with HS256"},
		"no signature":          {header + "." + payload + ".", "signature is wrong"},
		"alg HS384":             {signed(t, jwt.SigningMethodHS384, []byte(secret), with("", nil)), "not signed with HS256"},
		"alg HS512":             {signed(t, jwt.SigningMethodHS512, []byte(secret), with("", nil)), "not signed with HS256"},
		"alg ES256":             {signed(t, jwt.SigningMethodES256, newKey(t), with("", nil)), "not signed with HS256"},
		"another secret":        {signed(t, jwt.SigningMethodHS256, []byte("x"), with("", nil)), "signature is wrong"},
		"changed claims":        {header + "." + strings.Split(withSecret(t, with("sub", "8")), ".")[1] + "." + signature, "signature is wrong"},
		"expired":               {withSecret(t, with("exp", 1_000_000_000)), "expired at 2001-09-09T01:46:40Z"},
		"no exp":                {withSecret(t, with("exp", nil)), "no expiry"},
		"exp is text":           {withSecret(t, with("exp", "tomorrow")), "not a well-formed JWT"},
		"exp past int64":        {withSecret(t, with("exp", 1e300)), "expired"},
		"not yet valid":         {withSecret(t, with("nbf", in(time.Hour))), "not valid before"},
		"another iss":           {withSecret(t, with("iss", "https://evil.example")), "iss"},
		"no iss":                {withSecret(t, with("iss", nil)), "iss"},
		"another aud":           {withSecret(t, with("aud", "other")), "aud"},
		"no aud":                {withSecret(t, with("aud", nil)), "aud"},
		"no sub":                {withSecret(t, with("sub", nil)), "sub"},
		"sub empty":             {withSecret(t, with("sub", "")), "sub"},
		"sub 0":                 {withSecret(t, with("sub", "0")), "sub"},
		"sub -1":                {withSecret(t, with("sub", "-1")), "sub"},
		"sub +1":                {withSecret(t, with("sub", "+1")), "sub"},
		"sub 007":               {withSecret(t, with("sub", "007")), "sub"},
		"sub with a blank":      {withSecret(t, with("sub", " 7")), "sub"},
		"sub abc":               {withSecret(t, with("sub", "abc")), "sub"},
		"sub 2^63":              {withSecret(t, with("sub", "9223372036854775808")), "sub"},
		"sub in Arabic numbers": {withSecret(t, with("sub", "٧")), "sub"},
		"sub is a number":       {withSecret(t, with("sub", 7)), "not a well-formed JWT"},
		"unknown role":          {withSecret(t, with("role", "admin")), "role must be user, support or service"},
		"role in capitals":      {withSecret(t, with("role", "SERVICE")), "role"},
		"role is a list":        {withSecret(t, with("role", []string{"service"})), "not a well-formed JWT"},
	} {
		t.Run(name, func(t *testing.T) {
			viewer, expiry, err := v.Verify(t.Context(), c.token)
			if viewer != (person.Viewer{}) || !expiry.IsZero() {
				t.Errorf("got %+v until %v beside the refusal", viewer, expiry)
			}
			wantRefusal(t, err, c.want)
		})
	}
}

func TestVerifyAllowsClocksToDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVerifier(t, auth.Config{Secret: secret})
		token := withSecret(t, jwt.MapClaims{"sub": "7", "nbf": in(20 * time.Second), "exp": in(time.Minute)})
		_, expiry, err := v.Verify(t.Context(), token)
		if err != nil {
			t.Fatalf("20 s before nbf: %v", err)
		}
		if want := time.Now().Add(90 * time.Second); !expiry.Equal(want) {
			t.Errorf("accepted until %v, want %v", expiry, want)
		}
		time.Sleep(time.Until(expiry) - time.Nanosecond)
		if _, _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("just before the instant that Verify named: %v", err)
		}
		time.Sleep(time.Nanosecond)
		_, _, err = v.Verify(t.Context(), token)
		wantRefusal(t, err, "expired at")
	})
}

// TestRememberedTokenExpires: the second look at a token is one into the cache, and that must not matter.
func TestRememberedTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVerifier(t, auth.Config{Secret: secret})
		token := withSecret(t, jwt.MapClaims{"sub": "7", "exp": in(time.Second)})
		_, expiry, err := v.Verify(t.Context(), token)
		if err != nil || time.Until(expiry) != 31*time.Second {
			t.Fatalf("accepted until %v, %v, want for 31s", expiry, err)
		}
		if allocs := testing.AllocsPerRun(10, func() { _, _, err = v.Verify(t.Context(), token) }); allocs > 1 || err != nil {
			t.Errorf("a second look takes %v allocations, %v", allocs, err)
		}
		time.Sleep(31*time.Second - time.Nanosecond)
		viewer, again, err := v.Verify(t.Context(), token)
		if err != nil || viewer.ID != 7 || !again.Equal(expiry) {
			t.Errorf("just before expiry: got %+v until %v, %v", viewer, again, err)
		}
		time.Sleep(time.Nanosecond)
		_, _, err = v.Verify(t.Context(), token)
		wantRefusal(t, err, "expired at")
	})
}

func TestNamesAndRoles(t *testing.T) {
	v := newVerifier(t, auth.Config{Secret: secret})
	for name, c := range map[string]struct {
		claims jwt.MapClaims
		want   person.Viewer
	}{
		"neither":             {jwt.MapClaims{}, person.Viewer{ID: 7, Role: person.RoleUser}},
		"null":                {jwt.MapClaims{"name": nil, "role": nil}, person.Viewer{ID: 7, Role: person.RoleUser}},
		"support":             {jwt.MapClaims{"role": "support"}, person.Viewer{ID: 7, Role: person.RoleSupport}},
		"name is a number":    {jwt.MapClaims{"name": 12}, person.Viewer{ID: 7, Role: person.RoleUser}},
		"blanks and controls": {jwt.MapClaims{"name": " \x00\tA\x00da\n \u0085"}, person.Viewer{ID: 7, Name: "Ada", Role: person.RoleUser}},
		"longest":             {jwt.MapClaims{"name": strings.Repeat("é", 200)}, person.Viewer{ID: 7, Name: strings.Repeat("é", 200), Role: person.RoleUser}},
		"longer":              {jwt.MapClaims{"name": strings.Repeat("é", 199) + " éé"}, person.Viewer{ID: 7, Name: strings.Repeat("é", 199), Role: person.RoleUser}},
	} {
		t.Run(name, func(t *testing.T) {
			c.claims["sub"], c.claims["exp"] = "7", in(time.Hour)
			got, _, err := v.Verify(t.Context(), withSecret(t, c.claims))
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestConfigNamesTheField(t *testing.T) {
	for _, c := range []struct {
		cfg  auth.Config
		want string
	}{
		{auth.Config{Issuer: "https://chat.example"}, "one of Secret and JWKSURL must be set"},
		{auth.Config{Secret: secret, JWKSURL: "https://chat.example/keys"}, "Secret and JWKSURL must not both be set"},
		{auth.Config{JWKSURL: "file:///etc/keys"}, "JWKSURL must be an http or https URL"},
		{auth.Config{JWKSURL: "chat.example/keys"}, "JWKSURL must be an http or https URL"},
	} {
		if _, err := auth.NewVerifier(c.cfg); err == nil || err.Error() != "auth: "+c.want {
			t.Errorf("%+v: got %v, want %q", c.cfg, err, c.want)
		}
	}
}

func TestShortSecretIsTakenWithAWarning(t *testing.T) {
	var log bytes.Buffer
	newVerifier(t, auth.Config{Secret: "dev", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if got := log.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "bytes=3") || strings.Contains(got, "dev") {
		t.Errorf("logged %q", got)
	}
}

func TestSignRefusesWhatVerifyWould(t *testing.T) {
	ada := person.Viewer{ID: 7, Role: person.RoleUser}
	for name, sign := range map[string]func() (string, error){
		"no secret": func() (string, error) { return auth.Sign(auth.Config{}, ada, time.Hour) },
		"no id":     func() (string, error) { return auth.Sign(auth.Config{Secret: secret}, person.Viewer{}, time.Hour) },
		"unknown role": func() (string, error) {
			return auth.Sign(auth.Config{Secret: secret}, person.Viewer{ID: 7, Role: "admin"}, 1)
		},
		"no time": func() (string, error) { return auth.Sign(auth.Config{Secret: secret}, ada, 0) },
	} {
		if token, err := sign(); err == nil {
			t.Errorf("%s: got %q", name, token)
		}
	}
}

func FuzzVerify(f *testing.F) {
	v, err := auth.NewVerifier(auth.Config{Secret: secret})
	if err != nil {
		f.Fatal(err)
	}
	for _, payload := range []string{
		`{"sub":"7","exp":9999999999,"name":"Ada","role":"support"}`, `{"sub":"07","exp":1e300}`, `null`, `[]`, `{"exp":-1}`,
		`{"sub":"7","exp":9999999999,"name":{"first":"Ada"},"aud":["a",1]}`, `{"sub":7}`, `{`, "{\"name\":\"\xff\\u0000\"}",
	} {
		f.Add(`{"alg":"HS256"}`, payload)
		f.Add(`{"alg":"none"}`, payload)
	}
	f.Add(`{"alg":7,"kid":{}}`, `{}`)
	f.Add(`null`, `null`)
	f.Fuzz(func(t *testing.T, header, payload string) {
		encode := base64.RawURLEncoding.EncodeToString
		token := encode([]byte(header)) + "." + encode([]byte(payload))
		signature, err := jwt.SigningMethodHS256.Sign(token, []byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		viewer, expiry, err := v.Verify(t.Context(), token+"."+encode(signature))
		if err != nil {
			if fault.CodeOf(err) != fault.Unauthenticated || viewer != (person.Viewer{}) {
				t.Fatalf("got %+v, %v", viewer, err)
			}
			return
		}
		var h struct{ Alg string }
		if json.Unmarshal([]byte(header), &h) != nil || h.Alg != "HS256" {
			t.Errorf("accepted header %q", header)
		}
		if viewer.ID < 1 || !viewer.Role.Valid() || !expiry.After(time.Now()) {
			t.Errorf("accepted %+v until %v", viewer, expiry)
		}
		if n := utf8.RuneCountInString(viewer.Name); n > person.MaxNameLength || !utf8.ValidString(viewer.Name) || strings.ContainsRune(viewer.Name, 0) {
			t.Errorf("name %q", viewer.Name)
		}
	})
}
