// Package person holds who is who: people as others see them, and the viewer on whose behalf a call is made.
package person

import (
	"context"

	"tidemark/internal/id"
)

// MaxNameLength bounds a display name, in characters.
const MaxNameLength = 200

// Person is somebody as others see them.
type Person struct {
	ID          id.User
	DisplayName string
}

// Role says what a token's bearer may do beyond their own affairs.
type Role string

// The roles. Each bearer of a valid token has exactly one.
const (
	// RoleUser is a person with their own channels, the default.
	RoleUser Role = "user"
	// RoleSupport is a person who may also read anybody's state, where a field offers it.
	RoleSupport Role = "support"
	// RoleService is a backend: it makes channels, changes members and deletes messages for people.
	RoleService Role = "service"
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool {
	return r == RoleUser || r == RoleSupport || r == RoleService
}

// Viewer is who makes a call, as their token says.
type Viewer struct {
	ID   id.User
	Name string // empty where the token carries none
	Role Role
}

type viewerKey struct{}

// NewContext returns ctx with the viewer in it.
func NewContext(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// FromContext returns the viewer, and false where the call carries no valid token.
func FromContext(ctx context.Context) (Viewer, bool) {
	v, ok := ctx.Value(viewerKey{}).(Viewer)
	return v, ok
}
