package e2e_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"tidemark/internal/id"
)

// TestClients has the GraphQL clients that apps use follow the badges of a person, each on a server of its own, while
// their tokens end and their servers are stopped, killed and started again.
func TestClients(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("clients/node_modules/graphql-ws"); err != nil {
		t.Fatalf("%v: run make setup", err)
	}
	stays := serve(t)
	for i, c := range []struct {
		script string
		socket bool // it follows by a websocket, else by server-sent events
	}{
		{"graphql-ws.mjs", true},
		{"urql.mjs", true},
		{"apollo.mjs", true},
		{"graphql-sse.mjs", false},
		{"urql-sse.mjs", false},
	} {
		t.Run(strings.TrimSuffix(c.script, ".mjs"), func(t *testing.T) {
			t.Parallel()
			comesBack(t, stays, c.script, c.socket, id.User(2*i+1), id.User(2*i+2))
		})
	}
}

// TestManyClientsComeBack restarts a server while many follow: it ends soon, and all of them are told to come back.
func TestManyClientsComeBack(t *testing.T) {
	t.Parallel()
	const clients = 200
	stays := serve(t)
	channel := stays.group(1, 2)
	s := stays.serve(t, "TIDEMARK_SOCKETS_PER_PERSON=1000")
	many := runNode(t, "clients", "many.mjs", s.url+"/graphql", s.as(1).token, strconv.Itoa(clients))
	type round struct {
		Labels []string
		Closed map[string]int
	}
	var first, second round
	decode(t, many.line(), &first)
	expect(t, "what they show", strings.Join(first.Labels, " or "), "0")

	stopsSoon(t, s)
	stays.as(2).send(channel, "while the server restarts")
	stays.serve(t, "TIDEMARK_SOCKETS_PER_PERSON=1000", "TIDEMARK_LISTEN="+strings.TrimPrefix(s.url, "http://"))
	decode(t, many.line(), &second)
	expect(t, "what they show", strings.Join(second.Labels, " or "), "1")
	expect(t, "sockets that were closed with 1012", second.Closed["1012"], clients)
	many.ends()
}

// stopsSoon stops a server that clients follow. By itself it would wait 10 seconds for what does not end.
func stopsSoon(t *testing.T, s *server) {
	t.Helper()
	asked := time.Now()
	s.stop()
	if took := time.Since(asked); took > 8*time.Second {
		t.Errorf("the server took %v to end", took)
	}
}

// comesBack has a client follow a person's badges through all that may happen to its connection. Whoever does anything
// else calls the server that stays.
func comesBack(t *testing.T, stays *server, script string, socket bool, me, other id.User) {
	t.Helper()
	ada, ben := stays.as(me), stays.as(other)
	ada.t, ben.t = t, t
	channel := ada.create("GROUP", "ours", other)
	s := stays.serve(t)
	at := "TIDEMARK_LISTEN=" + strings.TrimPrefix(s.url, "http://")
	c := &realClient{script: runNode(t, "clients", script, s.url+"/graphql"), ada: ada}
	returns := func(what string, snapshots, code int) {
		t.Helper()
		c.await(what, func() bool { return c.snapshots >= snapshots && c.isRight() })
		if socket && (len(c.closed) == 0 || c.closed[0] != code) {
			t.Errorf("%s: sockets were closed with %v, want %d first", what, c.closed, code)
		}
		c.closed = nil
	}

	// Tokens end some seconds after they were asked for, until one has been good enough for a snapshot. While the client
	// waits for the next one, a message comes.
	c.token = func(what string) string {
		switch {
		case what == "stream" && c.snapshots == 0:
			return short(t, me)
		case what == "stream":
			ben.send(channel, "while the token is renewed")
		}
		return ada.token
	}
	c.tell(vars{"do": "follow"})
	c.await("the first badges", func() bool { return c.snapshots > 0 && c.isRight() })
	ben.send(channel, "hello")
	c.await("a change", func() bool { return c.snapshots+c.changes > 1 && c.isRight() })
	returns("the badges with another token", 2, 4403)
	c.token = func(string) string { return ada.token }
	c.calls(channel)

	stopsSoon(t, s)
	ben.send(channel, "while the server restarts")
	s = stays.serve(t, at)
	returns("the badges after a restart", 3, 1012)

	s.kill()
	ben.send(channel, "while there is no server")
	s = stays.serve(t, at)
	returns("the badges after a crash", 4, 1006)

	before := c.changes
	ben.send(channel, "and on it goes")
	c.await("a change after all that", func() bool { return c.changes > before && c.isRight() })
	c.calls(channel)
	c.ends()
	eventually(t, "the server has nobody to tell", func() bool {
		metrics := s.as(me).get("/metrics").body
		return strings.Contains(metrics, "\ntidemark_live_websockets 0\n") &&
			strings.Contains(metrics, "\ntidemark_live_sse_streams 0\n") &&
			strings.Contains(metrics, "\ntidemark_live_badge_subscribers 0\n")
	})
}

// short signs a token that ends in 3 to 4 seconds, because clocks may be 30 seconds apart.
func short(t *testing.T, user id.User) string {
	t.Helper()
	return signClaims(t, jwt.SigningMethodHS256, []byte(secret), jwt.MapClaims{
		"sub": user.String(), "exp": time.Now().Add(-26 * time.Second).Unix(),
	})
}

// realClient is a client that apps use, driven by a script that driver.mjs describes.
type realClient struct {
	*script
	ada   client                   // the same person, who asks what is right
	token func(what string) string // gives the tokens that the client asks for

	held               held // what the client holds
	snapshots, changes int  // events that came
	closed             []int
}

// held are the badges that somebody holds.
type held struct {
	Nodes      []badge
	Total      total
	StoreEpoch string
}

// sorted has the badges in the order of their names.
func (h held) sorted() held {
	h.Nodes = slices.SortedFunc(slices.Values(h.Nodes), func(a, b badge) int { return strings.Compare(a.ID, b.ID) })
	return h
}

// hear takes what the client says next, and gives it the token that it may want.
func (c *realClient) hear() (answer json.RawMessage, ok bool) {
	c.t.Helper()
	line := c.line()
	if line == "" {
		return nil, false
	}
	var said struct {
		Wants, Event, Failed string
		Answer               json.RawMessage
		Closed               int
		Held                 *held
	}
	decode(c.t, line, &said)
	switch {
	case said.Failed != "":
		c.t.Errorf("the client has failed: %s", said.Failed)
		return nil, false
	case said.Wants != "":
		c.tell(vars{"do": "token", "token": c.token(said.Wants)})
	case said.Closed != 0:
		c.closed = append(c.closed, said.Closed)
	case said.Event == "snapshot":
		c.snapshots++
	case said.Event == "change":
		c.changes++
	}
	if said.Held != nil {
		c.holds(*said.Held)
	}
	return said.Answer, true
}

// holds takes what the client holds now, which is never older than what it held before.
func (c *realClient) holds(now held) {
	c.t.Helper()
	for _, before := range c.held.Nodes {
		for _, b := range now.Nodes {
			if b.ID == before.ID && b.Version < before.Version {
				c.t.Errorf("a badge goes back from %+v to %+v", before, b)
			}
		}
	}
	c.held = now.sorted()
}

// await hears what the client has to say until something holds.
func (c *realClient) await(what string, holds func() bool) {
	c.t.Helper()
	for !holds() {
		if _, ok := c.hear(); !ok {
			c.t.Fatalf("waiting for %s: %d snapshots and %d changes came, sockets closed with %v, and this is wrong (-right +held):\n%s",
				what, c.snapshots, c.changes, c.closed, cmp.Diff(c.right(), c.held))
		}
	}
}

// right is what the client must hold, if nobody writes meanwhile.
func (c *realClient) right() held {
	c.t.Helper()
	page := c.ada.page("first: 500")
	return held{page.Nodes, page.Total, page.StoreEpoch}.sorted()
}

func (c *realClient) isRight() bool {
	c.t.Helper()
	return cmp.Equal(c.right(), c.held)
}

// calls has the client make a query, and a mutation that reads all of a channel.
func (c *realClient) calls(channel string) {
	c.t.Helper()
	answered := func(query string, variables vars) (answer struct {
		Badges   badgePage
		MarkRead marked
	},
	) {
		c.t.Helper()
		c.tell(vars{"do": "call", "query": query, "variables": variables})
		var data json.RawMessage
		for data == nil {
			var ok bool
			if data, ok = c.hear(); !ok {
				c.t.Fatalf("%s is not answered", query)
			}
		}
		decode(c.t, string(data), &answer)
		return answer
	}
	page := answered(`query ($first: Int!) { badges(first: $first)`+pageFields+` }`, vars{"first": 10}).Badges
	b := find(c.t, page, channel)
	expect(c.t, "whether there is anything to read", b.Unread.Count > 0, true)
	read := answered(markRead, vars{"channel": channel, "seq": b.HighWaterSeq, "epoch": b.ReadEpoch}).MarkRead
	expect(c.t, "what became of the read", read.Outcome, "ADVANCED")
	c.await("what was read", func() bool {
		return c.isRight() && find(c.t, badgePage{Nodes: c.held.Nodes}, channel).Unread.Count == 0
	})
}

// TestProtocol holds a server with its default settings against the protocol of its websockets.
func TestProtocol(t *testing.T) {
	t.Parallel()
	s := serve(t)
	checks := runNode(t, "clients", "protocol.mjs", s.url+"/graphql", s.as(1).token)
	said := checks.ends()
	if len(said) != 1 {
		t.Errorf("the server does not keep to the protocol:\n%s", strings.Join(said, ""))
	}
}
