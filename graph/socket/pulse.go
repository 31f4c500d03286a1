package socket

import "time"

// firstPing is when clients are asked for the first time, if not earlier.
const firstPing = 3 * time.Second

// pulse is what a connection waits for, guarded by its mutex. One timer serves all of it.
type pulse struct {
	clock  *time.Timer
	waits  waiting
	due    time.Time // when the wait is over; zero: nothing is waited for
	pinged time.Time
	expiry time.Time // of the token; zero: none
}

type waiting uint8

const (
	forInit waiting = iota
	toPing
	forPong
)

// awaitInit starts the clock.
func (c *conn) awaitInit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = time.Now().Add(c.t.config.InitTimeout)
	c.clock = time.AfterFunc(c.t.config.InitTimeout, c.tick)
}

// hold stops the clock while it is our turn.
func (c *conn) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaitLocked(toPing, time.Time{})
}

// beat starts the pings to a client that is signed in until expiry.
func (c *conn) beat(expiry time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expiry = expiry
	c.awaitLocked(toPing, time.Now().Add(min(firstPing, c.t.config.PingEvery)))
}

// ponged takes a sign of life, if one was asked for.
func (c *conn) ponged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits == forPong {
		c.awaitLocked(toPing, c.pinged.Add(c.t.config.PingEvery))
	}
}

// tick does what is due.
func (c *conn) tick() {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.work.Add(1)
	defer c.work.Done()
	now := time.Now()
	expired := !c.expiry.IsZero() && !now.Before(c.expiry)
	if !expired && (c.due.IsZero() || now.Before(c.due)) { // it was put off while the clock rang
		c.setClockLocked()
		c.mu.Unlock()
		return
	}
	waited := c.waits
	if !expired && waited == toPing {
		c.pinged = now
		c.awaitLocked(forPong, now.Add(c.t.config.PongWithin))
	}
	c.mu.Unlock()

	switch {
	case expired:
		c.end(codeForbidden, "the token has expired")
	case waited == forInit:
		c.end(codeSilent, "Connection initialisation timeout")
	case waited == forPong:
		if c.end(codeSilent, "pong timeout") {
			c.t.silent.Add(1)
		}
	default:
		c.send([]byte(`{"type":"ping"}`))
	}
}

func (c *conn) awaitLocked(what waiting, due time.Time) {
	c.waits, c.due = what, due
	c.setClockLocked()
}

// setClockLocked sets the clock to what is due next.
func (c *conn) setClockLocked() {
	next := c.due
	if next.IsZero() || !c.expiry.IsZero() && c.expiry.Before(next) {
		next = c.expiry
	}
	if c.over || next.IsZero() {
		c.clock.Stop()
		return
	}
	c.clock.Reset(time.Until(next))
}
