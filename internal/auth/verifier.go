// Package auth turns a bearer token into the person.Viewer on whose behalf a call is made.
//
// Tokens are JWTs. They are signed either with a secret that Tidemark shares with the product (HS256), or by an
// issuer that publishes its public keys (RS, PS, ES and EdDSA). Which of the two is configured fixes the methods
// that are accepted, so a token can never choose a weaker one. A token without an expiry is refused.
//
// A token that was found good is believed for up to a minute without checking its signature again, and never beyond
// its expiry.
//
// Every refusal is a fault.Unauthenticated that tells a developer what is wrong with the token. The one other
// answer is fault.Unavailable: the issuer's keys cannot be had at the moment, so nothing is known about the token,
// and a client must not sign its user out over it.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/fault"
	"tidemark/internal/person"
)

const (
	// leeway is how far the clocks of the issuer and of this process may be apart.
	leeway = 30 * time.Second
	// maxTokenLength bounds what is decoded before any signature is known to be right, in bytes.
	maxTokenLength = 8 << 10
	// safeSecretLength is as long as what HS256 makes of it, in bytes.
	safeSecretLength = 32
)

// Config says whose tokens are trusted. Exactly one of Secret and JWKSURL is set.
type Config struct {
	// Secret is the key of HS256 tokens. One of less than 32 bytes, the least that RFC 7518 allows, is taken with a
	// warning.
	Secret string
	// JWKSURL is where the issuer publishes its keys as a JSON Web Key Set.
	JWKSURL string
	// Issuer must be the token's iss. Empty: any.
	Issuer string
	// Audience must be among the token's aud. Empty: any.
	Audience string
	// HTTPClient fetches JWKSURL. Nil: one that gives up after 5 seconds.
	HTTPClient *http.Client
	// Logger is warned of a short secret and of keys that cannot be fetched. Nil: slog.Default.
	Logger *slog.Logger
}

// Validate names the field that is not what it may be.
func (c Config) Validate() error {
	switch {
	case c.Secret == "" && c.JWKSURL == "":
		return errors.New("auth: one of Secret and JWKSURL must be set")
	case c.Secret != "" && c.JWKSURL != "":
		return errors.New("auth: Secret and JWKSURL must not both be set")
	case c.JWKSURL != "":
		u, err := url.Parse(c.JWKSURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("auth: JWKSURL must be an http or https URL")
		}
	}
	return nil
}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	methods   []string
	parser    *jwt.Parser
	validator *jwt.Validator
	key       func(context.Context, *jwt.Token) (any, error)
	good      cache
	close     func()
}

// NewVerifier returns a verifier of the tokens that cfg describes. With a JWKSURL it starts to fetch the keys and
// refreshes them until Close, but does not wait for them: an issuer that is away delays the first answers only.
func NewVerifier(cfg Config) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	checks := []jwt.ParserOption{jwt.WithExpirationRequired(), jwt.WithLeeway(leeway)}
	if cfg.Issuer != "" {
		checks = append(checks, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		checks = append(checks, jwt.WithAudience(cfg.Audience))
	}
	v := &Verifier{validator: jwt.NewValidator(checks...)}
	if cfg.Secret != "" {
		secret := []byte(cfg.Secret)
		if len(secret) < safeSecretLength {
			cfg.Logger.Warn("the secret of tokens is short enough to be guessed", "bytes", len(secret))
		}
		v.methods = []string{jwt.SigningMethodHS256.Alg()}
		v.key = func(context.Context, *jwt.Token) (any, error) { return secret, nil }
		v.close = func() {}
	} else {
		keys, err := openKeySet(cfg)
		if err != nil {
			return nil, err
		}
		v.methods = publicKeyMethods()
		v.key = keys.find
		v.close = keys.close
	}
	v.parser = jwt.NewParser(jwt.WithValidMethods(v.methods), jwt.WithoutClaimsValidation())
	return v, nil
}

// Close ends the refreshing of keys and waits until it has ended.
func (v *Verifier) Close() { v.close() }

// Verify returns the token's viewer, and the instant from which on the token is no longer accepted: its exp plus
// the leeway for clocks. What was opened with the token, such as a socket, should not outlive that instant.
func (v *Verifier) Verify(ctx context.Context, token string) (person.Viewer, time.Time, error) {
	if len(token) > maxTokenLength {
		return person.Viewer{}, time.Time{}, fault.New(fault.Unauthenticated, "the token is longer than %d bytes", maxTokenLength)
	}
	hash := tokenHash(sha256.Sum256([]byte(token)))
	if a, ok := v.good.get(hash); ok {
		return a.viewer, a.expiry, nil
	}
	c, err := v.check(ctx, token)
	if err != nil {
		return person.Viewer{}, time.Time{}, err
	}
	viewer, err := c.viewer()
	if err != nil {
		return person.Viewer{}, time.Time{}, err
	}
	expiry := c.ExpiresAt.Add(leeway)
	v.good.put(hash, viewer, expiry)
	return viewer, expiry, nil
}

// check returns the claims of a token that comes from the issuer and is valid now.
func (v *Verifier) check(ctx context.Context, token string) (claims, error) {
	// The claims are validated apart from the parsing: jwt's parser panics on claims that are the JSON null.
	var c claims
	parsed, err := v.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) { return v.key(ctx, t) })
	if err != nil {
		return claims{}, v.untrusted(parsed, err)
	}
	if _, asks := parsed.Header["crit"]; asks { // RFC 7515, 4.1.11: what is critical and not understood is refused
		return claims{}, fault.New(fault.Unauthenticated, "the token asks for extensions that are not understood")
	}
	if err := v.validator.Validate(c); err != nil {
		return claims{}, c.invalid(err)
	}
	return c, nil
}

// untrusted is the refusal of a token that cannot be read, or of which nobody knows that the issuer signed it.
func (v *Verifier) untrusted(token *jwt.Token, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	refusal := &fault.Error{Code: fault.Unauthenticated, Message: "the token's signature is wrong", Err: err}
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		refusal.Message = "the token is not a well-formed JWT with claims of the right types"
	case token.Method == nil || !slices.Contains(v.methods, token.Method.Alg()):
		refusal.Message = "the token is not signed with " + strings.Join(v.methods, " or ")
	}
	return refusal
}
