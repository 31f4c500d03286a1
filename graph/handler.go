package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/vektah/gqlparser/v2/ast"

	"tidemark/graph/generated"
	"tidemark/graph/socket"
	"tidemark/internal/id"
	"tidemark/internal/person"
)

const (
	// cachedDocuments bounds the parsed queries that are kept. An app has some dozens; one at the limits takes 200 KB.
	cachedDocuments = 250
	// persistedQueries bounds the texts that clients may name by their hash.
	persistedQueries = 1000
)

// MutationLimiter bounds how much one person may change.
type MutationLimiter interface {
	// Allow returns nil where the person may make cost changes more, and else the error to answer with.
	Allow(ctx context.Context, user id.User, cost int) error
}

// Config says how the API is served.
type Config struct {
	// Resolver answers the fields. It must be set.
	Resolver *Resolver
	// Logger is told what clients are not: the causes of internal errors, and panics. Nil: slog.Default.
	Logger *slog.Logger
	// Introspection lets everybody ask for the schema.
	Introspection bool
	// Origins are the web origins, such as https://chat.example.com, whose pages may call beside those of the host
	// that serves the API. Requests from pages of other origins are refused.
	Origins []string
	// RequestTimeout bounds each query and mutation. Zero: 5 seconds.
	RequestTimeout time.Duration
	// Limits bound what one request may ask for.
	Limits Limits
	// Sockets says how connections are kept that stay open.
	Sockets Sockets
	// Authenticate returns ctx with the viewer of an Authorization header in it, for auth.ViewerFrom. It is for
	// websockets, which say who they are when they are open. Nil: none of them is let in.
	Authenticate func(ctx context.Context, header string) context.Context
	// Presence hears of each connection that a person keeps open. Nil: nobody does.
	Presence socket.Presence
	// MutationLimiter is asked before a mutation is executed, at a cost of one for each of its fields; not for a
	// service. Nil: no limit.
	MutationLimiter MutationLimiter
	// Extensions are the outermost: they see each operation first and its answer last.
	Extensions []graphql.HandlerExtension
	// Welcome makes the viewer known. It is called once for each operation that has one, before it is executed, and
	// its error ends the operation. Nil: nothing is done.
	Welcome func(ctx context.Context, viewer person.Viewer) error
}

// Limits bound what one request may ask for. What goes over one is refused before anything is executed.
type Limits struct {
	// BodyBytes bounds a request's body. Zero: 512 KiB, which holds the longest message with each character escaped
	// twice, as JSON may, and the longest list of cursors.
	BodyBytes int
	// QueryBytes bounds the text of a query, which is kept once it was found valid. Zero: 16 KiB.
	QueryBytes int
	// Tokens bounds the words and signs of a query. Zero: 2,000.
	Tokens int
	// Selections bounds the fields and fragments of a document: those of each operation and of each fragment, with
	// what they spread written out. Zero: 1,000.
	Selections int
	// Repeats bounds the pairs of fields that have one name in one place: validation compares each, before they are
	// merged. Zero: 10,000.
	Repeats int
	// Depth bounds how deep fields are nested. Zero: 16, one more than what GraphiQL asks of the schema.
	Depth int
	// RootFields bounds the fields of an operation itself. Zero: 20.
	RootFields int
	// Complexity bounds what an answer costs, in the units of complexity.go. Zero: 50,000, twice the largest of
	// sensible answers.
	Complexity int
}

// Sockets says how connections are kept that stay open: websockets, and streams of server-sent events.
type Sockets struct {
	// InitTimeout is how long a websocket may take to say who it is. Zero: 3 seconds.
	InitTimeout time.Duration
	// PingEvery is how often a websocket's client is asked for a sign of life, which it has 5 seconds for, and how often
	// an event stream with nothing to tell shows one to its client. Zero: 25 seconds.
	PingEvery time.Duration
	// WriteTimeout bounds the writing of one message. Zero: 10 seconds.
	WriteTimeout time.Duration
	// MaxOperations bounds what one websocket may have going on at a time. Zero: 100.
	MaxOperations int
	// MaxPerPerson bounds the connections that one person has open in this process. Zero: 50.
	MaxPerPerson int
}

// Validate names the field that is not what it may be.
func (c Config) Validate() error {
	if c.Resolver == nil {
		return errors.New("graph: Resolver must be set")
	}
	if c.RequestTimeout < 0 {
		return errors.New("graph: RequestTimeout must not be negative")
	}
	if err := c.Limits.validate(); err != nil {
		return err
	}
	if err := c.withDefaults().sockets().Validate(); err != nil {
		return fmt.Errorf("graph: Sockets: %w", err)
	}
	return origins(c.Origins).validate()
}

func (l Limits) validate() error {
	for _, limit := range []struct {
		name string
		is   int
	}{
		{"BodyBytes", l.BodyBytes},
		{"QueryBytes", l.QueryBytes},
		{"Tokens", l.Tokens},
		{"Selections", l.Selections},
		{"Repeats", l.Repeats},
		{"Depth", l.Depth},
		{"RootFields", l.RootFields},
		{"Complexity", l.Complexity},
	} {
		if limit.is < 0 {
			return fmt.Errorf("graph: Limits.%s must not be negative", limit.name)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second)
	c.Sockets.PingEvery = cmp.Or(c.Sockets.PingEvery, 25*time.Second)
	c.Sockets.WriteTimeout = cmp.Or(c.Sockets.WriteTimeout, 10*time.Second)
	if c.Authenticate == nil {
		c.Authenticate = func(ctx context.Context, _ string) context.Context { return ctx }
	}
	c.Limits = Limits{
		BodyBytes:  cmp.Or(c.Limits.BodyBytes, 512<<10),
		QueryBytes: cmp.Or(c.Limits.QueryBytes, 16<<10),
		Tokens:     cmp.Or(c.Limits.Tokens, 2000),
		Selections: cmp.Or(c.Limits.Selections, 1000),
		Repeats:    cmp.Or(c.Limits.Repeats, 10_000),
		Depth:      cmp.Or(c.Limits.Depth, 16),
		RootFields: cmp.Or(c.Limits.RootFields, 20),
		Complexity: cmp.Or(c.Limits.Complexity, 50_000),
	}
	return c
}

// sockets is how websockets are served, once the defaults are filled in.
func (c Config) sockets() socket.Config {
	return socket.Config{
		Authenticate: c.Authenticate, Present: present, Presence: c.Presence, Logger: c.Logger,
		MaxBytes: c.Limits.BodyBytes, CallTimeout: c.RequestTimeout,
		InitTimeout: c.Sockets.InitTimeout, PingEvery: c.Sockets.PingEvery, WriteTimeout: c.Sockets.WriteTimeout,
		MaxOperations: c.Sockets.MaxOperations, MaxPerPerson: c.Sockets.MaxPerPerson,
	}
}

// Handler serves the API.
type Handler struct {
	http.Handler
	sockets *socket.Transport
}

// NewHandler serves the API that cfg describes, which must be valid. Who calls is what auth.ViewerFrom says of a
// request's context, and for a websocket what cfg.Authenticate does.
func NewHandler(cfg Config) *Handler {
	return newHandler(cfg, generated.NewExecutableSchema(generated.Config{Schema: servedSchema(), Resolvers: cfg.Resolver}))
}

// Drain ends all connections that stay open, which http.Server.Shutdown does not, and lets in no more of them. See
// socket.Transport.Drain.
func (h *Handler) Drain(ctx context.Context, over time.Duration) { h.sockets.Drain(ctx, over) }

// SocketStats counts the connections that stay open.
func (h *Handler) SocketStats() socket.Stats { return h.sockets.Stats() }

func newHandler(cfg Config, schema graphql.ExecutableSchema) *Handler {
	cfg = cfg.withDefaults()
	server := handler.New(schema)
	log := report{logger: cfg.Logger}

	// The first transport that supports a request answers it.
	sockets := socket.New(cfg.sockets())
	each := calls{maxBytes: int64(cfg.Limits.BodyBytes), timeout: cfg.RequestTimeout}
	server.AddTransport(sockets)
	server.AddTransport(events{calls: each, sockets: sockets, report: log, keepAlive: cfg.Sockets.PingEvery, writeTimeout: cfg.Sockets.WriteTimeout})
	server.AddTransport(post{each})
	server.AddTransport(get{each})
	server.AddTransport(unsupported{})

	server.SetErrorPresenter(present)
	server.SetRecoverFunc(log.recovered)

	documents := lru.New[*ast.QueryDocument](cachedDocuments)
	server.SetQueryCache(documents)
	server.SetParserTokenLimit(cfg.Limits.Tokens)
	server.SetDisableSuggestion(true)
	server.SetValidationRulesFn(rulesFor(cfg.Introspection))

	// Extensions of one kind run in the order in which they are used. Each relies on those before it: only what the
	// guard let pass is worth keeping, validating, and computing a price for.
	for _, e := range cfg.Extensions {
		server.Use(e)
	}
	server.Use(log)
	server.Use(guard{limits: cfg.Limits, passed: documents})
	server.Use(persisted{extension.AutomaticPersistedQuery{Cache: lru.New[string](persistedQueries)}})
	if cfg.Introspection {
		server.Use(extension.Introspection{})
	}
	server.Use(budget(cfg.Limits.Complexity))
	server.Use(admission{limiter: cfg.MutationLimiter, welcome: cfg.Welcome, report: log})
	return &Handler{Handler: origins(cfg.Origins).protect(server), sockets: sockets}
}

// servedSchema returns the schema without @defer, which gqlgen adds to it: no transport here sends an answer in parts,
// so what is put off would be missing.
func servedSchema() *ast.Schema {
	served := *generated.NewExecutableSchema(generated.Config{}).Schema()
	served.Directives = maps.Clone(served.Directives)
	delete(served.Directives, "defer")
	return &served
}
