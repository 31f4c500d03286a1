package socket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/internal/id"
)

// Presence hears of the connections that people have open: of a websocket from when its client is let in, of an event
// stream from its start, and of the end of each exactly once, as soon as nothing can be delivered any more. Its methods
// must not block.
type Presence interface {
	// Connected says that a person has one connection more.
	Connected(user id.User)
	// Disconnected says that they have one less.
	Disconnected(user id.User)
}

// Config says how sockets are served.
type Config struct {
	// Authenticate returns ctx with the viewer of an Authorization header in it, for auth.ViewerFrom and auth.Expiry.
	// It must be set.
	Authenticate func(ctx context.Context, header string) context.Context
	// Present turns an error into what a client is told of it. It must be set.
	Present func(ctx context.Context, err error) *gqlerror.Error
	// Presence hears of each connection of a person. Nil: nobody does.
	Presence Presence
	// Logger is told of panics, and of what Present keeps from clients. Nil: slog.Default.
	Logger *slog.Logger
	// MaxBytes bounds a message of a client. Zero: 512 KiB.
	MaxBytes int
	// InitTimeout is how long a client may take to say who it is. Zero: 3 seconds.
	InitTimeout time.Duration
	// PingEvery is how often clients are asked for a sign of life; the first time after 3 seconds at most, because a
	// path that is not fit for websockets often is so from the start. Zero: 25 seconds.
	PingEvery time.Duration
	// PongWithin is how long the sign of life may take; at most PingEvery. Zero: 5 seconds, or PingEvery if that is less.
	PongWithin time.Duration
	// WriteTimeout bounds the writing of one message. Zero: 10 seconds.
	WriteTimeout time.Duration
	// CallTimeout bounds a query, a mutation, the opening of a subscription, and the check of a token. Zero: 5 seconds.
	CallTimeout time.Duration
	// MaxOperations bounds what one socket may have going on at a time. Zero: 100.
	MaxOperations int
	// MaxPerPerson bounds the sockets and event streams of one person in this process. Zero: 50.
	MaxPerPerson int
}

// Validate names the field that is not what it may be.
func (c Config) Validate() error {
	switch {
	case c.Authenticate == nil:
		return errors.New("socket: Authenticate must be set")
	case c.Present == nil:
		return errors.New("socket: Present must be set")
	}
	for _, field := range []struct {
		name string
		is   int64
	}{
		{"MaxBytes", int64(c.MaxBytes)},
		{"InitTimeout", int64(c.InitTimeout)},
		{"PingEvery", int64(c.PingEvery)},
		{"PongWithin", int64(c.PongWithin)},
		{"WriteTimeout", int64(c.WriteTimeout)},
		{"CallTimeout", int64(c.CallTimeout)},
		{"MaxOperations", int64(c.MaxOperations)},
		{"MaxPerPerson", int64(c.MaxPerPerson)},
	} {
		if field.is < 0 {
			return fmt.Errorf("socket: %s must not be negative", field.name)
		}
	}
	if full := c.withDefaults(); full.PongWithin > full.PingEvery {
		return errors.New("socket: PongWithin must not be more than PingEvery")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Presence == nil {
		c.Presence = unheard{}
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, 512<<10)
	c.InitTimeout = cmp.Or(c.InitTimeout, 3*time.Second)
	c.PingEvery = cmp.Or(c.PingEvery, 25*time.Second)
	c.PongWithin = cmp.Or(c.PongWithin, min(5*time.Second, c.PingEvery))
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.CallTimeout = cmp.Or(c.CallTimeout, 5*time.Second)
	c.MaxOperations = cmp.Or(c.MaxOperations, 100)
	c.MaxPerPerson = cmp.Or(c.MaxPerPerson, 50)
	return c
}

// unheard is a Presence that nobody listens to.
type unheard struct{}

func (unheard) Connected(id.User)    {}
func (unheard) Disconnected(id.User) {}
