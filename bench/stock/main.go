// Command stock serves Tidemark's API as gqlgen comes: the same schema, resolvers and hub, and the same look at who
// calls, behind gqlgen's own transports and its executor. It is what Tidemark's live updates are held against. Where
// its engines are and what its tokens are signed with it takes from the same environment.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/bench/collect"
	"tidemark/graph"
	"tidemark/graph/generated"
	"tidemark/internal/auth"
	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/live"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
	"tidemark/internal/redis"
	"tidemark/internal/telemetry"
)

const (
	// As in Tidemark.
	initTimeout     = 3 * time.Second
	pingEvery       = 25 * time.Second
	cachedDocuments = 250

	headerTimeout = 5 * time.Second
)

func main() {
	collect.WhenAsked()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log); err != nil {
		log.Error("cannot serve", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	connections, err := strconv.Atoi(os.Getenv("TIDEMARK_MAX_CONNECTIONS"))
	if err != nil {
		return err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: os.Getenv("DATABASE_URL"), MaxConnections: connections})
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := redis.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer client.Close()
	verifier, err := auth.NewVerifier(auth.Config{Secret: os.Getenv("TIDEMARK_JWT_SECRET")})
	if err != nil {
		return err
	}
	defer verifier.Close()
	people, err := person.NewDirectory(store)
	if err != nil {
		return err
	}
	metrics, err := telemetry.New(ctx, telemetry.Config{Version: "stock"})
	if err != nil {
		return err
	}

	past := delivery.New(store, readstate.New(store, nil), delivery.DefaultMaxGap)
	hub := live.NewHub(store, past, redis.NewBroker(client, redis.BrokerConfig{Logger: log}), live.Config{Logger: log})
	var background sync.WaitGroup
	defer background.Wait()
	living, endLiving := context.WithCancel(ctx)
	defer endLiving()
	background.Go(func() {
		if err := hub.Run(living); err != nil {
			log.Error("live updates have ended", "error", err)
		}
	})

	readStates := readstate.New(store, hub)
	api := newAPI(&graph.Resolver{
		ReadStates: readStates, Channels: channel.NewChannels(store, readStates, hub), People: people, Live: hub,
		Deliveries: delivery.New(store, readStates, delivery.DefaultMaxGap),
	}, verifier, people)
	mux := http.NewServeMux()
	mux.Handle("/graphql", verifier.Middleware(api))
	mux.Handle("GET /metrics", metrics.Metrics())
	return serve(ctx, log, mux)
}

// newAPI is the handler as gqlgen's documentation has it, for production.
func newAPI(resolver *graph.Resolver, verifier *auth.Verifier, people *person.Directory) http.Handler {
	server := handler.New(generated.NewExecutableSchema(generated.Config{Resolvers: resolver}))
	server.AddTransport(transport.Websocket{
		InitTimeout:      initTimeout,
		PingPongInterval: pingEvery,
		InitFunc: func(ctx context.Context, payload transport.InitPayload) (context.Context, *transport.InitPayload, error) {
			ctx = verifier.Authenticate(ctx, payload.Authorization())
			_, err := auth.ViewerFrom(ctx)
			return ctx, nil, err
		},
	})
	server.AddTransport(transport.POST{})
	server.SetQueryCache(lru.New[*ast.QueryDocument](cachedDocuments))
	server.AroundOperations(func(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
		viewer, err := auth.ViewerFrom(ctx)
		if err == nil {
			err = people.Welcome(ctx, viewer)
		}
		if err != nil {
			return graphql.OneShot(&graphql.Response{Errors: gqlerror.List{gqlerror.Wrap(err)}})
		}
		return next(ctx)
	})
	return server
}

func serve(ctx context.Context, log *slog.Logger, h http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String())
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
