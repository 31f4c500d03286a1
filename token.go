package main

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"tidemark/internal/auth"
	"tidemark/internal/embedded"
	"tidemark/internal/id"
	"tidemark/internal/person"
)

type tokenCommand struct {
	dataDir `embed:""`
	tokens  `embed:""`

	User string        `required:"" help:"Whose token: the decimal form of a positive 64-bit integer."`
	Name string        `help:"The name that others see."`
	Role string        `enum:"user,support,service" default:"user" help:"user, support or service."`
	TTL  time.Duration `name:"ttl" default:"1h" help:"How long it is good for."`
}

// Run prints the token, and nothing else.
func (c *tokenCommand) Run() error {
	user, err := id.ParseUser(c.User)
	if err != nil {
		return errors.New("--user must be the decimal form of a positive 64-bit integer")
	}
	signing, err := c.signing(c.DataDir, embedded.KeptSecret)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no secret to sign with: give the server's as TIDEMARK_JWT_SECRET, or --data-dir where tidemark dev has made one")
	}
	if err != nil {
		return err
	}
	token, err := auth.Sign(signing, person.Viewer{ID: user, Name: c.Name, Role: person.Role(c.Role)}, c.TTL)
	if err != nil {
		return err
	}
	fmt.Println(token)
	return nil
}
