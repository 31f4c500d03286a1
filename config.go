package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"tidemark/internal/auth"
	"tidemark/internal/ratelimit"
	"tidemark/internal/telemetry"
	"tidemark/web"
)

// minVerifyEvery is how often people may be drawn at the most.
const minVerifyEvery = 100 * time.Millisecond

// dataDir says where the engines of a first run are. Commands that can do with those take it.
type dataDir struct {
	DataDir string `placeholder:"DIR" help:"Where tidemark dev keeps its Postgres, its Redis and the token secret. Default: /var/lib/tidemark for root, else tidemark below XDG_DATA_HOME or ~/.local/share."`
}

// database says where Postgres is.
type database struct {
	DatabaseURL string `name:"database-url" env:"DATABASE_URL,TIDEMARK_DATABASE_URL" placeholder:"URL" help:"Postgres. ${without}"`
}

// place says where the data are.
type place struct {
	database `embed:""`
	RedisURL string `name:"redis-url" env:"REDIS_URL,TIDEMARK_REDIS_URL" placeholder:"URL" help:"Redis. ${without}"`
}

// localDatabase is a Postgres that need not be named where the data directory has one.
type localDatabase struct {
	dataDir  `embed:""`
	database `embed:""`
}

// localPlace is a place that need not be named where the data directory has it.
type localPlace struct {
	dataDir `embed:""`
	place   `embed:""`
}

// tokens says whose tokens are good. Exactly one of secret and key set is used.
type tokens struct {
	JWTSecret   string `name:"jwt-secret" placeholder:"SECRET" help:"Key of HS256 tokens. One of fewer than 32 bytes can be guessed."`
	JWTIssuer   string `name:"jwt-issuer" placeholder:"ISS" help:"What a token's iss must be. Left out, anything."`
	JWTAudience string `name:"jwt-audience" placeholder:"AUD" help:"What must be among a token's aud. Left out, anything."`
}

// processConfig is what can be set about every process, be it one that serves or one that only works. Each flag is also an
// environment variable: TIDEMARK_ and its name.
type processConfig struct {
	place `embed:""`

	Listen                string        `default:"${listen}" help:"Address to listen on."`
	NewlyUnreadMaxMembers int           `default:"100" help:"The largest group in which every message counts as newly unread; in larger ones, those that name somebody."`
	NewlyUnreadCoalesce   bool          `default:"true" negatable:"" help:"Write only the newest message of each sender in a batch to Redis."`
	RedisReplicaURL       string        `name:"redis-replica-url" placeholder:"URL" help:"A replica of Redis. It is asked first what need not be written."`
	NewlyUnreadRecency    time.Duration `default:"30s" help:"With a replica, how much older than it is the time of a sender's latest message may be shown."`
	NewlyUnreadWhen       string        `enum:"always,offline" default:"always" help:"always: every such message counts as newly unread. offline: only those that come while their reader has no websocket or event stream open."`
	MaxConnections        int           `default:"0" help:"Connections to Postgres at the most. 0: pool_max_conns of its URL, else 16."`
	StatementTimeout      time.Duration `default:"5s" help:"How long a statement may run in Postgres."`
	LockTimeout           time.Duration `default:"3s" help:"How long a statement may wait for a lock in Postgres."`
	LogFormat             string        `enum:"text,json" default:"${log}" help:"text for people, json for machines."`
	LogLevel              slog.Level    `default:"info" help:"debug, info, warn or error."`
}

// config is all that can be set about a server.
type config struct {
	processConfig `embed:""`
	tokens        `embed:""`

	JWKSURL          string        `name:"jwks-url" placeholder:"URL" help:"Where the issuer of tokens publishes its keys, in place of a secret."`
	AllowOrigin      []string      `placeholder:"ORIGIN" help:"Origins of frontends on other hosts, such as https://chat.example."`
	Playground       bool          `default:"${open}" negatable:"" help:"Serve GraphiQL on /."`
	Inspector        bool          `default:"true" negatable:"" help:"Serve the inspector on /inspect, which asks for a token of the support role."`
	Introspection    bool          `default:"${open}" negatable:"" help:"Answer introspection."`
	RequestTimeout   time.Duration `default:"5s" help:"How long a call may take."`
	DrainTimeout     time.Duration `default:"10s" help:"How long calls that run may go on after SIGTERM."`
	MutationRate     float64       `default:"${rate}" help:"Mutations of one person in a second, in the long run. 0: no limit."`
	MutationBurst    int           `default:"${burst}" help:"Mutations of one person at once, after a pause."`
	SyncMaxGap       int           `default:"1000" help:"The largest gap, in messages, that a device is sent; past it, it starts afresh from the newest page."`
	ReconcileEvery   time.Duration `default:"30s" help:"How often each badge that is shown live is compared with Postgres: how long one may be wrong after a fault."`
	WithoutWorker    bool          `help:"Leave the work between a message and newly unread to others: see tidemark work."`
	VerifyEvery      time.Duration `default:"1m" help:"How often some people are drawn whose badges are recounted: see tidemark_verify in the metrics. 0: never."`
	VerifySample     int           `default:"20" help:"How many people are drawn each time."`
	PingEvery        time.Duration `default:"25s" help:"How often a websocket is asked for a sign of life. One that gives none within 5 seconds is closed."`
	WriteTimeout     time.Duration `default:"10s" help:"How long a client may take to read what it is sent live."`
	SocketsPerPerson int           `default:"50" help:"Websockets and event streams of one person that a process holds."`
	SocketOperations int           `default:"100" help:"Subscriptions and calls that one websocket may have going on."`
	playgroundToken  string        // what the playground sends; dev alone has one
	demo, inspector  web.Settings  // with tokens in dev alone
}

// least is a duration and how short it may be.
type least struct {
	flag      string
	is, least time.Duration
}

// between is a number and from where to where it may be.
type between struct {
	flag            string
	is, least, most int
}

// withinLimits names the first flag that is not what it may be.
func withinLimits(durations []least, numbers []between) error {
	for _, limit := range durations {
		if limit.is < limit.least {
			return fmt.Errorf("%s must be at least %s", limit.flag, limit.least)
		}
	}
	for _, limit := range numbers {
		if limit.is < limit.least || limit.is > limit.most {
			return fmt.Errorf("%s must be from %d to %d", limit.flag, limit.least, limit.most)
		}
	}
	return nil
}

// Validate names the flag that is not what it may be.
func (c *processConfig) Validate() error {
	return withinLimits([]least{
		{"--statement-timeout", c.StatementTimeout, 10 * time.Millisecond},
		{"--lock-timeout", c.LockTimeout, 10 * time.Millisecond},
		{"--newly-unread-recency", c.NewlyUnreadRecency, time.Millisecond},
	}, []between{
		{"--max-connections", c.MaxConnections, 0, 1000},
		{"--newly-unread-max-members", c.NewlyUnreadMaxMembers, 2, 10_000},
	})
}

// Validate names the flag that is not what it may be.
func (c *config) Validate() error {
	if err := c.processConfig.Validate(); err != nil {
		return err
	}
	if err := withinLimits([]least{
		{"--request-timeout", c.RequestTimeout, 100 * time.Millisecond},
		{"--drain-timeout", c.DrainTimeout, 0},
		{"--reconcile-every", c.ReconcileEvery, 100 * time.Millisecond},
		{"--ping-every", c.PingEvery, 100 * time.Millisecond},
		{"--write-timeout", c.WriteTimeout, 100 * time.Millisecond},
	}, []between{
		{"--sync-max-gap", c.SyncMaxGap, 1, 100_000},
		{"--sockets-per-person", c.SocketsPerPerson, 1, 10_000},
		{"--socket-operations", c.SocketOperations, 1, 10_000},
		{"--verify-sample", c.VerifySample, 1, 1000},
	}); err != nil {
		return err
	}
	if c.VerifyEvery != 0 && c.VerifyEvery < minVerifyEvery {
		return fmt.Errorf("--verify-every must be 0, or at least %s", minVerifyEvery)
	}
	if err := c.mutationLimit().Validate(); err != nil {
		return fmt.Errorf("--mutation-rate and --mutation-burst: %w", err)
	}
	return nil
}

func (c *config) mutationLimit() ratelimit.Limit {
	return ratelimit.Limit{Rate: c.MutationRate, Burst: c.MutationBurst}
}

func (c *processConfig) logger() (*slog.Logger, error) {
	return telemetry.Logger(os.Stderr, c.LogFormat, c.LogLevel)
}

// listener opens the address before anything else is started, so that one in use is known at once.
func (c *processConfig) listener(ctx context.Context) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w (give another with --listen)", c.Listen, err)
	}
	return l, nil
}

// signing returns the key that tokens are signed with: the secret given or, without one, what is kept in the data directory.
func (t tokens) signing(dataDir string, kept func(dataDir string) (string, error)) (auth.Config, error) {
	config := auth.Config{Secret: t.JWTSecret, Issuer: t.JWTIssuer, Audience: t.JWTAudience}
	if config.Secret == "" {
		secret, err := kept(dataDir)
		if err != nil {
			return auth.Config{}, err
		}
		config.Secret = secret
	}
	return config, nil
}

// missing names what a production process cannot do without.
func (c *processConfig) missing() error { return missing(c.lacking()) }

// missing names what a production server cannot do without.
func (c *config) missing() error {
	lacking := c.lacking()
	if c.JWTSecret == "" && c.JWKSURL == "" {
		lacking = append(lacking, "TIDEMARK_JWT_SECRET or TIDEMARK_JWKS_URL")
	}
	return missing(lacking)
}

func (p place) lacking() (settings []string) {
	if p.DatabaseURL == "" {
		settings = append(settings, "DATABASE_URL")
	}
	if p.RedisURL == "" {
		settings = append(settings, "REDIS_URL")
	}
	return settings
}

func missing(settings []string) error {
	if len(settings) == 0 {
		return nil
	}
	return fmt.Errorf("not set: %s (to try Tidemark without them: tidemark dev)", strings.Join(settings, ", "))
}
