package auth

import (
	"crypto/sha256"
	"sync"
	"time"

	"tidemark/internal/person"
)

const (
	// rememberFor bounds how long a token is believed without another look at its signature and at the keys.
	rememberFor = time.Minute
	// generation bounds how many tokens are remembered for certain; there are never more than twice as many.
	generation = 10_000
)

// cache remembers good tokens, because an app sends the same one with every call, and a look costs as much as all
// else that a cheap call does. It never holds a token beyond its expiry, and it holds hashes of tokens only.
type cache struct {
	mu sync.Mutex
	// When young holds a generation it becomes old, and what was old goes.
	young, old map[tokenHash]acceptance
}

type tokenHash [sha256.Size]byte

// acceptance is what Verify returned for a token, and how long it may do so without verifying.
type acceptance struct {
	viewer person.Viewer
	expiry time.Time
	until  time.Time
}

func (c *cache) get(token tokenHash) (acceptance, bool) {
	c.mu.Lock()
	a, ok := c.young[token]
	if !ok {
		a, ok = c.old[token]
	}
	c.mu.Unlock()
	return a, ok && time.Now().Before(a.until)
}

func (c *cache) put(token tokenHash, viewer person.Viewer, expiry time.Time) {
	until := time.Now().Add(rememberFor)
	if until.After(expiry) {
		until = expiry
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.young == nil || len(c.young) >= generation {
		c.old, c.young = c.young, make(map[tokenHash]acceptance)
	}
	c.young[token] = acceptance{viewer: viewer, expiry: expiry, until: until}
}
