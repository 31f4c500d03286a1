package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/auth"
	"tidemark/internal/fault"
)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issuer publishes keys, as a server and as the transport of a client: the latter needs no network, so that it can
// be used in a synctest bubble.
type issuer struct {
	mu      sync.Mutex
	keys    jwkset.JWKSMarshal
	down    bool
	fetches int
}

func (i *issuer) publish(t *testing.T, keys map[string]any) {
	t.Helper()
	set := jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{}}
	for kid, key := range keys {
		jwk, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{
			Marshal:  jwkset.JWKMarshalOptions{Private: true}, // symmetric keys count as private
			Metadata: jwkset.JWKMetadataOptions{KID: kid},
		})
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, jwk.Marshal())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = set
}

func (i *issuer) setDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

func (i *issuer) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fetches++
	if i.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_ = json.NewEncoder(w).Encode(i.keys)
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

func (i *issuer) config() auth.Config {
	return auth.Config{
		JWKSURL:    "https://issuer.example/keys",
		HTTPClient: &http.Client{Transport: i},
		Logger:     slog.New(slog.DiscardHandler),
	}
}

func (i *issuer) token(t *testing.T, method jwt.SigningMethod, kid string, key any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims{"sub": "7", "exp": in(24 * time.Hour)})
	if kid != "" {
		token.Header["kid"] = kid
	}
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestPublishedKeys(t *testing.T) {
	ec := newKey(t)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var i issuer
	i.publish(t, map[string]any{"ec": ec.Public(), "rsa": rs.Public(), "ed": edPublic, "oct": []byte(secret)})
	server := httptest.NewServer(&i)
	t.Cleanup(server.Close)
	v := newVerifier(t, auth.Config{JWKSURL: server.URL, HTTPClient: server.Client()})

	for name, token := range map[string]string{
		"ES256":  i.token(t, jwt.SigningMethodES256, "ec", ec),
		"RS256":  i.token(t, jwt.SigningMethodRS256, "rsa", rs),
		"PS512":  i.token(t, jwt.SigningMethodPS512, "rsa", rs),
		"EdDSA":  i.token(t, jwt.SigningMethodEdDSA, "ed", ed),
		"no kid": i.token(t, jwt.SigningMethodES256, "", ec),
	} {
		if viewer, _, err := v.Verify(t.Context(), token); err != nil || viewer.ID != 7 {
			t.Errorf("%s: got %+v, %v", name, viewer, err)
		}
	}
	der := rs.N.Bytes() // what an attacker knows of the RSA key
	for name, c := range map[string]struct{ token, want string }{
		"HS256 with a public key":    {i.token(t, jwt.SigningMethodHS256, "rsa", der), "not signed with RS256"},
		"HS256 with a published":     {i.token(t, jwt.SigningMethodHS256, "oct", []byte(secret)), "not signed with RS256"},
		"alg none":                   {i.token(t, jwt.SigningMethodNone, "rsa", jwt.UnsafeAllowNoneSignatureType), "not signed with RS256"},
		"kid of another kind":        {i.token(t, jwt.SigningMethodES256, "rsa", ec), "signature is wrong"},
		"kid of a symmetric key":     {i.token(t, jwt.SigningMethodES256, "oct", ec), "signature is wrong"},
		"somebody else's key":        {i.token(t, jwt.SigningMethodES256, "ec", newKey(t)), "signature is wrong"},
		"somebody else's, no kid":    {i.token(t, jwt.SigningMethodES256, "", newKey(t)), "signature is wrong"},
		"a key that is not in there": {i.token(t, jwt.SigningMethodES256, "new", ec), "does not publish"},
	} {
		_, _, err := v.Verify(t.Context(), c.token)
		t.Run(name, func(t *testing.T) { wantRefusal(t, err, c.want) })
	}
}

func TestKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newKey(t), newKey(t)
		var i issuer
		i.publish(t, map[string]any{"1": first.Public()})
		v := newVerifier(t, i.config())
		old, young := i.token(t, jwt.SigningMethodES256, "1", first), i.token(t, jwt.SigningMethodES256, "2", second)
		verify := func(token string) error {
			_, _, err := v.Verify(t.Context(), token)
			return err
		}
		if err := verify(old); err != nil {
			t.Fatal(err)
		}

		time.Sleep(6 * time.Second)
		i.publish(t, map[string]any{"1": first.Public(), "2": second.Public()})
		if err := verify(young); err != nil {
			t.Errorf("a token with the new key, right after it was published: %v", err)
		}
		if err := verify(old); err != nil {
			t.Errorf("a token with the old key, while it is published: %v", err)
		}

		i.publish(t, map[string]any{"2": second.Public()})
		for range 6 { // the token is in use all the time
			_ = verify(old)
			time.Sleep(time.Minute)
		}
		wantRefusal(t, verify(old), "does not publish")
		if err := verify(young); err != nil {
			t.Error(err)
		}

		before := i.count()
		for range 100 {
			wantRefusal(t, verify(i.token(t, jwt.SigningMethodES256, "made up", second)), "does not publish")
		}
		if n := i.count() - before; n > 1 {
			t.Errorf("100 tokens with made-up keys made %d requests", n)
		}
	})
}

func TestIssuerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := newKey(t)
		var i issuer
		i.publish(t, map[string]any{"1": key.Public()})
		i.setDown(true)
		v := newVerifier(t, i.config())
		for _, kid := range []string{"1", ""} {
			_, _, err := v.Verify(t.Context(), i.token(t, jwt.SigningMethodES256, kid, key))
			if fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("kid %q, no keys at all: got %v, want %s", kid, err, fault.Unavailable)
			}
		}

		i.setDown(false)
		time.Sleep(6 * time.Second)
		good := i.token(t, jwt.SigningMethodES256, "1", key)
		if _, _, err := v.Verify(t.Context(), good); err != nil {
			t.Fatalf("the issuer is back: %v", err)
		}

		i.setDown(true)
		time.Sleep(time.Hour)
		if _, _, err := v.Verify(t.Context(), good); err != nil {
			t.Errorf("a known key while the issuer is away: %v", err)
		}
		_, _, err := v.Verify(t.Context(), i.token(t, jwt.SigningMethodES256, "2", newKey(t)))
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a key that may be new while the issuer is away: got %v, want %s", err, fault.Unavailable)
		}
	})
}

// stuck is an issuer that takes requests and never answers.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestSilentIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var i issuer
		cfg := i.config()
		cfg.HTTPClient = &http.Client{Transport: stuck{}}
		v := newVerifier(t, cfg)
		token := i.token(t, jwt.SigningMethodES256, "1", newKey(t))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, _, err := v.Verify(ctx, token)
		if fault.CodeOf(err) != fault.Unavailable || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: got %v, want %s when the caller's time is up", time.Since(start), err, fault.Unavailable)
		}

		v.Close()
		if took := time.Since(start); took != time.Second {
			t.Errorf("Close waited for the issuer: %v", took)
		}
		if _, _, err := v.Verify(t.Context(), token); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("after Close: got %v, want %s", err, fault.Unavailable)
		}
	})
}
