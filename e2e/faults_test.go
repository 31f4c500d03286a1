package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/redis/redistest"
)

// readiness is the status that /readyz tells, and its HTTP status.
func (s *server) readiness() (string, int) {
	s.t.Helper()
	var told struct{ Status string }
	r := s.bearing("").get("/readyz")
	decode(s.t, r.body, &told)
	return told.Status, r.status
}

// awaitReadiness waits until /readyz tells a status.
func (s *server) awaitReadiness(status string) {
	s.t.Helper()
	eventually(s.t, "/readyz says "+status, func() bool {
		told, _ := s.readiness()
		return told == status
	})
}

// operations are one of each field that asks the store, for a channel.
func operations(channel string) []string {
	call := func(operation string) string { return fmt.Sprintf(operation, channel) }
	return []string{
		`{ me { displayName badgeTotal { unreadChannels } } }`,
		`{ badges { nodes { channel { name } } } }`,
		call(`{ channel(id: %s) { name members { nodes { id } } messages { body } } }`),
		call(`{ syncChannel(channelId: %s, deviceId: "phone") { __typename } }`),
		`{ syncDevice(deviceId: "phone") { channels { action } } }`,
		call(`mutation { sendMessage(channelId: %s, body: "hello") { duplicate } }`),
		call(`mutation { deleteMessage(channelId: %s, seq: 1) { deleted } }`),
		call(`mutation { markRead(channelId: %s, upToSeq: 1) { outcome } }`),
		call(`mutation { markManyRead(cursors: [{channelId: %s, upToSeq: 1}]) { outcome } }`),
		call(`mutation { markUnread(channelId: %s, fromSeq: 1) { outcome } }`),
		call(`mutation { setMuted(channelId: %s, muted: false) { muted } }`),
		call(`mutation { confirmDelivery(deviceId: "phone", cursors: [{channelId: %s, seq: 1}]) { lastDeliveredSeq } }`),
		`mutation { forgetDevice(deviceId: "phone") }`,
		`mutation { createChannel(input: {kind: GROUP, memberIds: [2]}) { id } }`,
		`mutation { createChannel(input: {kind: DIRECT, memberIds: [2]}) { id } }`,
		call(`mutation { addMembers(channelId: %s, userIds: [3]) { memberCount } }`),
		call(`mutation { removeMember(channelId: %s, userId: 3) { memberCount } }`),
	}
}

// askAll makes one call of each kind, all at once, and checks the code of each answer and that it comes in time.
func askAll(t *testing.T, c client, channel, code string, limit time.Duration) {
	t.Helper()
	var calls []func()
	for _, operation := range operations(channel) {
		calls = append(calls, func() {
			asked := time.Now()
			expect(t, operation, c.do(operation, nil).code(), code)
			if took := time.Since(asked); took > limit {
				t.Errorf("%s took %v, want %v at most", operation, took, limit)
			}
		})
	}
	together(calls...)
}

func TestPostgresIsAway(t *testing.T) {
	t.Parallel()
	postgres := pgtest.NewServer(t)
	s := engines{database: postgres.URL(), redis: redistest.New(t)}.serve(t)
	a := s.as(1)
	channel := a.create("GROUP", "", 2)
	a.sends(channel, 3)
	s.as(2).sends(channel, 1)
	before := contents(t, s.database)

	postgres.Kill()
	askAll(t, a, channel, "UNAVAILABLE", callTimeout+time.Second)
	expect(t, "GET /me", a.get("/me").status, http.StatusServiceUnavailable)
	expect(t, "the code of GET /me", a.get("/me").code(), "UNAVAILABLE")
	status, code := s.readiness()
	expect(t, "/readyz", status, "unavailable")
	expect(t, "the status of /readyz", code, http.StatusServiceUnavailable)
	expect(t, "/healthz", a.get("/healthz").status, http.StatusOK)
	expect(t, "somebody unknown", s.bearing("").do(`{ me { id } }`, nil).code(), "UNAUTHENTICATED")
	expect(t, "a wrong argument", a.do(`{ badges(first: 0) { storeEpoch } }`, nil).code(), "BAD_USER_INPUT")

	postgres.Start()
	s.awaitReadiness("ready")
	unchanged(t, s.database, before)
	eventually(t, "every connection is a new one", func() bool { return a.do(sendMessage, vars{"channel": channel, "body": "hello"}).code() == "" })
	askAll(t, a, channel, "", patience)
	expect(t, "unread of the other", s.as(2).badge(channel).Unread.Count, 2)
}

func TestPostgresIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	postgres := pgtest.NewServer(t)
	postgres.Kill()
	s := engines{database: postgres.URL(), redis: redistest.New(t)}.serve(t)
	expect(t, "/healthz", s.bearing("").get("/healthz").status, http.StatusOK)
	expect(t, "a call", s.as(1).do(`{ me { displayName } }`, nil).code(), "UNAVAILABLE")
	postgres.Start()
	s.awaitReadiness("ready")
	expect(t, "badges", len(s.as(1).overview().Nodes), 0)
}

func TestPostgresIsStuck(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_MAX_CONNECTIONS=4")
	a := s.as(1)
	channel := a.create("GROUP", "", 2)
	a.sends(channel, 3)
	release := hold(t, s.database, "LOCK TABLE channel_read_state, channel_head, message, users, device, channel IN ACCESS EXCLUSIVE MODE")
	// Most of these wait for one of four connections, and none for longer than a call may take.
	askAll(t, a, channel, "UNAVAILABLE", callTimeout+time.Second)
	release()
	askAll(t, a, channel, "", patience)
}

func TestPostgresIsReadOnly(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.as(1)
	channel := a.create("GROUP", "", 2)
	a.sends(channel, 3)
	a.on("phone").confirm(channel, vars{"seq": 3})
	before := contents(t, s.database)
	_, name := named(t, s.database)
	administer(t, s.database, "ALTER DATABASE "+name+" SET default_transaction_read_only = on", disconnect(name))
	eventually(t, "every connection is a new one", func() bool { return a.do(`{ me { displayName } }`, nil).code() == "" })
	for _, operation := range operations(channel) {
		code := ""
		if strings.HasPrefix(operation, "mutation") {
			code = "UNAVAILABLE"
		}
		expect(t, operation, a.do(operation, nil).code(), code)
	}
	expect(t, "a newcomer's badges", s.as(2).do(`{ badges { storeEpoch } }`, nil).code(), "")
	unchanged(t, s.database, before)
}

func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.as(1)
	channel := a.create("GROUP", "", 2)
	a.sends(channel, 3)
	s.awaitReadiness("ready")
	for _, fault := range []struct {
		name         string
		begin, end   func()
		whileItLasts string
	}{
		{"killed", s.redis.Kill, s.redis.Start, "degraded"},
		{"paused", s.redis.Pause, s.redis.Resume, "degraded"},
		{"flushed", func() { s.flushRedis(t) }, func() {}, "ready"},
		{"restarted", func() { s.redis.Kill(); s.redis.Start() }, func() {}, "ready"},
	} {
		fault.begin()
		askAll(t, a, channel, "", callTimeout)
		askAll(t, a, channel, "", callTimeout)
		a.overview()
		s.awaitReadiness(fault.whileItLasts)
		_, status := s.readiness()
		expect(t, "the status of /readyz while Redis is "+fault.name, status, http.StatusOK)
		fault.end()
		s.awaitReadiness("ready")
		askAll(t, a, channel, "", callTimeout)
	}
}

func TestRedisIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	e.redis.Kill()
	s := e.serve(t)
	a := s.as(1)
	channel := a.create("GROUP", "", 2)
	a.sends(channel, 1)
	askAll(t, a, channel, "", callTimeout)
	s.awaitReadiness("degraded")
	e.redis.Start()
	s.awaitReadiness("ready")
}

func TestTooManyMutations(t *testing.T) {
	t.Parallel()
	const burst = 6
	e := newEngines(t)
	limits := []string{"TIDEMARK_MUTATION_RATE=0.001", "TIDEMARK_MUTATION_BURST=" + strconv.Itoa(burst)}
	here, there := e.serve(t, limits...), e.serve(t, limits...)
	a := here.as(1)
	channel := a.create("GROUP", "", 2) // the first of the six
	for i := range burst - 1 {
		[]client{a, there.as(1)}[i%2].send(channel, "hello")
	}
	before := contents(t, e.database)
	for _, c := range []client{a, there.as(1)} {
		r := c.do(sendMessage, vars{"channel": channel, "body": "one too many"})
		expect(t, "one too many", r.code(), "RATE_LIMITED")
		if wait := r.problem().Extensions.RetryAfterMs; wait <= 0 || wait > 1_000_000 {
			t.Errorf("it is told to try again after %d ms", wait)
		}
	}
	unchanged(t, e.database, before)
	expect(t, "a query", len(a.page("first: 1").Nodes), 1)
	expect(t, "somebody else", here.as(2).send(channel, "hello").Message.Seq, burst)
	two := `mutation { a: forgetDevice(deviceId: "phone") b: forgetDevice(deviceId: "phone") }`
	for range burst / 2 {
		expect(t, "an operation of two", here.as(3).do(two, nil).code(), "")
	}
	expect(t, "one of two too many", here.as(3).do(two, nil).code(), "RATE_LIMITED")

	// Without Redis each process has an allowance of its own for everybody.
	e.redis.Kill()
	for range burst {
		a.send(channel, "hello")
	}
	expect(t, "one too many without Redis", a.do(sendMessage, vars{"channel": channel, "body": "one too many"}).code(), "RATE_LIMITED")
}

func TestAllowanceGrowsAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_MUTATION_RATE=0.5", "TIDEMARK_MUTATION_BURST=1")
	a := s.as(1)
	channel := a.create("GROUP", "", 2)
	expect(t, "a second at once", a.do(sendMessage, vars{"channel": channel, "body": "hello"}).code(), "RATE_LIMITED")
	eventually(t, "a second later on", func() bool {
		return a.do(sendMessage, vars{"channel": channel, "body": "hello"}).code() == ""
	})
	unlimited := serve(t, "TIDEMARK_MUTATION_RATE=0", "TIDEMARK_MUTATION_BURST=1")
	unlimited.as(1).sends(unlimited.group(1, 2), 100)
}
