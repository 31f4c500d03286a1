package e2e_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/auth"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/redis/redistest"
)

const (
	// secret is what the tokens of the tests are signed with.
	secret = "at least 32 bytes, and only for tests"
	// callTimeout is how long a server lets a call take.
	callTimeout = 5 * time.Second
)

// engines are a Postgres and a Redis, which servers may share.
type engines struct {
	database string
	redis    *redistest.Server
}

func newEngines(t *testing.T) engines {
	t.Helper()
	return engines{database: pgtest.NewDatabase(t), redis: redistest.New(t)}
}

// flushRedis empties the Redis, of its scripts too.
func (e engines) flushRedis(t *testing.T) {
	t.Helper()
	rdb := e.rdb(t)
	defer rdb.Close()
	if err := errors.Join(rdb.FlushAll(t.Context()).Err(), rdb.ScriptFlush(t.Context()).Err()); err != nil {
		t.Fatal(err)
	}
}

// rdb connects to the Redis, past Tidemark.
func (e engines) rdb(t *testing.T) *goredis.Client {
	t.Helper()
	options, err := goredis.ParseURL(e.redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	return goredis.NewClient(options)
}

// server is a `tidemark serve` and what it works on.
type server struct {
	*process
	engines
	url  string
	http *http.Client
}

// serve starts a server on engines of its own. Settings are environment variables.
func serve(t *testing.T, settings ...string) *server {
	t.Helper()
	return newEngines(t).serve(t, settings...)
}

// serve starts a server on these engines. At the end of the test it is asked to end, and has to obey.
func (e engines) serve(t *testing.T, settings ...string) *server {
	t.Helper()
	p := start(t, e.settings(settings...), "serve")
	address := p.says(`"msg":"serving","address":"([^"]+)"`)
	t.Cleanup(func() {
		if !p.killed {
			p.stop()
		}
	})
	return &server{process: p, engines: e, url: "http://" + address, http: newHTTPClient(t)}
}

// settings are those of a server on these engines, and more.
func (e engines) settings(more ...string) []string {
	return append([]string{
		"DATABASE_URL=" + e.database,
		"REDIS_URL=" + e.redis.URL(),
		"TIDEMARK_JWT_SECRET=" + secret,
		"TIDEMARK_LISTEN=127.0.0.1:0",
		"TIDEMARK_MUTATION_RATE=100000",
		"TIDEMARK_MUTATION_BURST=100000",
	}, more...)
}

// metric reads a number that the server tells of itself, and -1 where it tells none of that name.
func (s *server) metric(name string) int {
	s.t.Helper()
	for line := range strings.Lines(s.bearing("").get("/metrics").body) {
		if number, found := strings.CutPrefix(line, name+" "); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil {
				s.t.Errorf("%s: %v", name, err)
			}
			return int(n)
		}
	}
	return -1
}

// as returns the client of a person.
func (s *server) as(user id.User) client {
	s.t.Helper()
	return s.bearing(sign(s.t, person.Viewer{ID: user, Role: person.RoleUser}))
}

// backend returns the client of a service.
func (s *server) backend() client {
	s.t.Helper()
	return s.bearing(sign(s.t, person.Viewer{ID: 1, Role: person.RoleService}))
}

// bearing returns a client with some token.
func (s *server) bearing(token string) client {
	return client{t: s.t, http: s.http, url: s.url, token: token}
}

// sign returns a token for somebody.
func sign(t *testing.T, viewer person.Viewer) string {
	t.Helper()
	token, err := auth.Sign(auth.Config{Secret: secret}, viewer, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// newHTTPClient returns a client whose connections end with the test.
func newHTTPClient(t *testing.T) *http.Client {
	t.Helper()
	connections := &http.Transport{MaxIdleConnsPerHost: 200}
	t.Cleanup(connections.CloseIdleConnections)
	return &http.Client{Transport: connections, Timeout: patience}
}
