package auth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/person"
)

// Sign returns a token for viewer that a Verifier with the same cfg accepts for ttl. It needs cfg.Secret: tokens of
// an issuer with published keys are for that issuer to sign.
func Sign(cfg Config, viewer person.Viewer, ttl time.Duration) (string, error) {
	switch {
	case cfg.Secret == "":
		return "", errors.New("sign token: there is no secret to sign with")
	case viewer.ID < 1:
		return "", errors.New("sign token: the user's id must be positive")
	case viewer.Role != "" && !viewer.Role.Valid():
		return "", fmt.Errorf("sign token: no such role as %q", viewer.Role)
	case ttl <= 0:
		return "", errors.New("sign token: its time to live must be positive")
	}
	now := time.Now()
	c := claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   viewer.ID.String(),
			Issuer:    cfg.Issuer,
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
		},
		Role: viewer.Role,
	}
	if viewer.Name != "" {
		c.Name = viewer.Name
	}
	if cfg.Audience != "" {
		c.Audience = jwt.ClaimStrings{cfg.Audience}
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte(cfg.Secret))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return token, nil
}
