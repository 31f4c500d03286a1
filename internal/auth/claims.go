package auth

import (
	"cmp"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
)

// claims is what Tidemark reads of a token.
type claims struct {
	jwt.RegisteredClaims
	// Name may be of any type: whatever a product puts there must not lock its user out.
	Name any         `json:"name,omitempty"`
	Role person.Role `json:"role,omitempty"`
}

// viewer returns the person whom the claims name.
func (c claims) viewer() (person.Viewer, error) {
	user, err := id.ParseUser(c.Subject)
	if err != nil {
		return person.Viewer{}, &fault.Error{
			Code:    fault.Unauthenticated,
			Message: "the token's sub must be a user's id, the decimal form of a positive 64-bit integer",
			Err:     err,
		}
	}
	role := cmp.Or(c.Role, person.RoleUser)
	if !role.Valid() {
		return person.Viewer{}, fault.New(fault.Unauthenticated, "the token's role must be %s, %s or %s",
			person.RoleUser, person.RoleSupport, person.RoleService)
	}
	name, _ := c.Name.(string)
	return person.Viewer{ID: user, Name: displayName(name), Role: role}, nil
}

// invalid is the refusal of claims that err, which comes from their validation, speaks of.
func (c claims) invalid(err error) error {
	refusal := &fault.Error{Code: fault.Unauthenticated, Message: "the token's claims are not valid", Err: err}
	switch {
	case c.ExpiresAt == nil:
		refusal.Message = "the token has no expiry: it needs an exp"
	case errors.Is(err, jwt.ErrTokenExpired):
		refusal.Message = "the token expired at " + c.ExpiresAt.UTC().Format(time.RFC3339)
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		refusal.Message = "the token is not valid before " + c.NotBefore.UTC().Format(time.RFC3339)
	case errors.Is(err, jwt.ErrTokenInvalidIssuer), c.Issuer == "":
		refusal.Message = "the token's iss is not the issuer that is trusted here"
	default:
		refusal.Message = "the token's aud is not for this service"
	}
	return refusal
}

// displayName makes of a product's name one that can be stored and shown: without control characters, and no
// longer than person.MaxNameLength.
func displayName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(name)
	if runes := []rune(name); len(runes) > person.MaxNameLength {
		name = strings.TrimSpace(string(runes[:person.MaxNameLength]))
	}
	return name
}
