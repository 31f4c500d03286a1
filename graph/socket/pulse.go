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
	heard  time.Time // from the client, last
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

// hear takes a sign of life, which any message is.
func (c *conn) hear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
	if c.waits == forPong {
		c.awaitLocked(toPing, c.pinged.Add(c.t.config.PingEvery))
	}
}

// ping asks for a sign of life. The time for it begins when the question is written: what goes before it may take a
// slow client long.
func (c *conn) ping() {
	c.send([]byte(`{"type":"ping"}`))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
	case c.heard.After(c.pinged):
		c.awaitLocked(toPing, c.pinged.Add(c.t.config.PingEvery))
	default:
		c.awaitLocked(forPong, time.Now().Add(c.t.config.PongWithin))
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
		c.awaitLocked(toPing, time.Time{})
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
		c.ping()
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
