package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/person"
)

// claims are what a product's token says of a person, with changes. A nil takes a claim away.
func claims(changes jwt.MapClaims) jwt.MapClaims {
	all := jwt.MapClaims{"sub": "1", "iss": "chat", "aud": "tidemark", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

// signClaims signs whatever claims there are, with whatever key.
func signClaims(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "1"
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestWhichTokensAreGood(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_JWT_ISSUER=chat", "TIDEMARK_JWT_AUDIENCE=tidemark")
	now, key := time.Now(), []byte(secret)
	with := func(changes jwt.MapClaims) string {
		return signClaims(t, jwt.SigningMethodHS256, key, claims(changes))
	}
	valid, another := strings.Split(with(nil), "."), strings.Split(with(jwt.MapClaims{"sub": "2"}), ".")
	before := contents(t, s.database)
	for what, token := range map[string]string{
		"none":                   "",
		"not a token":            "x.y.z",
		"changed":                strings.Join([]string{valid[0], another[1], valid[2]}, "."),
		"of another secret":      signClaims(t, jwt.SigningMethodHS256, []byte("another one, of 32 bytes or more"), claims(nil)),
		"of another method":      signClaims(t, jwt.SigningMethodHS512, key, claims(nil)),
		"not signed":             signClaims(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims(nil)),
		"expired":                with(jwt.MapClaims{"exp": now.Add(-time.Minute).Unix()}),
		"without an end":         with(jwt.MapClaims{"exp": nil}),
		"of later":               with(jwt.MapClaims{"nbf": now.Add(time.Hour).Unix()}),
		"of nobody":              with(jwt.MapClaims{"sub": nil}),
		"of a name":              with(jwt.MapClaims{"sub": "ada"}),
		"of 0":                   with(jwt.MapClaims{"sub": "0"}),
		"of a number":            with(jwt.MapClaims{"sub": 1}),
		"of a number too large":  with(jwt.MapClaims{"sub": "9223372036854775808"}),
		"of no role":             with(jwt.MapClaims{"role": "admin"}),
		"of another issuer":      with(jwt.MapClaims{"iss": "other"}),
		"for another audience":   with(jwt.MapClaims{"aud": "other"}),
		"for no audience":        with(jwt.MapClaims{"aud": nil}),
		"longer than any should": with(jwt.MapClaims{"pad": strings.Repeat("x", 8<<10)}),
	} {
		c := s.bearing(token)
		message := c.refused("UNAUTHENTICATED", `mutation { createChannel(input: {kind: GROUP, memberIds: [2]}) { id } }`, nil)
		if message == "" {
			t.Errorf("a token %s is refused without a word", what)
		}
		me := c.get("/me")
		expect(t, "GET /me with a token "+what, me.status, http.StatusUnauthorized)
		expect(t, "its code", me.code(), "UNAUTHENTICATED")
		expect(t, "its message", me.message(), message)
		expect(t, "its challenge", me.header.Get("WWW-Authenticate"), "Bearer")
	}
	unchanged(t, s.database, before)

	for what, token := range map[string]string{
		"valid":                       with(nil),
		"for several audiences":       with(jwt.MapClaims{"aud": []string{"chat", "tidemark"}}),
		"just expired":                with(jwt.MapClaims{"exp": now.Add(-5 * time.Second).Unix()}),
		"of a clock that is ahead":    with(jwt.MapClaims{"iat": now.Add(time.Hour).Unix(), "nbf": now.Add(5 * time.Second).Unix()}),
		"with a name that is none":    with(jwt.MapClaims{"name": 7}),
		"with more than is asked for": with(jwt.MapClaims{"scope": []string{"x"}, "role": "support"}),
	} {
		expect(t, "a token "+what, s.bearing(token).do(`{ me { id } }`, nil).code(), "")
	}
}

func TestTokensOfAnIssuer(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	published, err := jwkset.NewJWKFromKey(key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	keys := jwkset.NewMemoryStorage()
	if err := keys.KeyWrite(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	set, err := keys.JSONPublic(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }))
	t.Cleanup(issuer.Close)

	s := serve(t, "TIDEMARK_JWT_SECRET=", "TIDEMARK_JWKS_URL="+issuer.URL)
	signed := signClaims(t, jwt.SigningMethodRS256, key, claims(nil))
	expect(t, "the issuer's token", s.bearing(signed).do(`{ me { id } }`, nil).code(), "")
	expect(t, "one of a secret", s.as(1).do(`{ me { id } }`, nil).code(), "UNAUTHENTICATED")

	away := serve(t, "TIDEMARK_JWT_SECRET=", "TIDEMARK_JWKS_URL=http://127.0.0.1:1/")
	expect(t, "a token while the issuer is away", away.bearing(signed).do(`{ me { id } }`, nil).code(), "UNAVAILABLE")
	expect(t, "GET /me meanwhile", away.bearing(signed).get("/me").status, http.StatusServiceUnavailable)
}

func TestPeopleAreCalledByTheirTokens(t *testing.T) {
	t.Parallel()
	s := serve(t)
	ben, channel := s.as(2), s.group(2, 5)
	direct := ben.create("DIRECT", "", 5)
	name := func() string {
		seen := ask[struct {
			Group struct {
				Members struct {
					Nodes []struct{ ID, DisplayName string }
				}
			}
			Own struct{ Name string }
		}](ben, `query ($group: ID!, $direct: ID!) {
			group: channel(id: $group) { members { nodes { id displayName } } }
			own: channel(id: $direct) { name } }`, vars{"group": channel, "direct": direct})
		expect(t, "what the direct channel is called", seen.Own.Name, seen.Group.Members.Nodes[1].DisplayName)
		return seen.Group.Members.Nodes[1].DisplayName
	}
	expect(t, "somebody who never came", name(), "Person 5")
	for _, step := range []struct{ token, want string }{
		{"", "Person 5"}, {"Eva", "Eva"}, {"", "Eva"}, {"Eve", "Eve"}, {" Eve \u0000\n", "Eve"},
	} {
		eva := s.bearing(sign(t, person.Viewer{ID: 5, Name: step.token}))
		own := ask[struct{ Me struct{ DisplayName string } }](eva, `{ me { displayName } }`, nil).Me.DisplayName
		expect(t, "what they are called to themselves", own, step.want)
		expect(t, "what they are called", name(), step.want)
	}
	expect(t, "who sent it", s.as(5).send(channel, "hello").Message.Sender.DisplayName, "Eve")
	s.bearing(sign(t, person.Viewer{ID: 5, Name: "Ewa"})).get("/me")
	expect(t, "what they are called after GET /me", name(), "Ewa")
	expect(t, "who sent it", ben.messages(channel, 1)[0].Sender.DisplayName, "Ewa")
}
