package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/graph"
	"tidemark/internal/auth"
	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/inspect"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/presence"
	"tidemark/internal/ratelimit"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
	"tidemark/internal/redis"
	"tidemark/internal/verify"
	"tidemark/playground"
	"tidemark/web"
)

const (
	// Bounds of a request that is still being read, and of a connection that waits for the next one.
	headerTimeout  = 5 * time.Second
	readTimeout    = 15 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 32 << 10
	// writeGrace is how long after its deadline a call's answer may still be on its way to a slow client.
	writeGrace = 10 * time.Second
	// sendBuffer bounds what the kernel holds for a client that reads its event stream slowly, or not at all.
	sendBuffer = 256 << 10
	// sweepEvery is how often devices that have long been silent are looked for.
	sweepEvery = time.Hour
	// sweepTimeout bounds one look. What it does not get to is there at the next.
	sweepTimeout = 5 * time.Minute
	// tracesTimeout bounds the sending of the last traces.
	tracesTimeout = 5 * time.Second
)

// server is one process that serves: what it holds open, and what it serves.
type server struct {
	process

	config     config
	verifier   *auth.Verifier
	people     *person.Directory
	channels   *channel.Channels
	readStates *readstate.ReadStates
	deliveries *delivery.Deliveries
	tracker    *presence.Tracker // nil where it makes no difference who is connected
	sampler    *verify.Sampler
	api        *graph.Handler
	handler    http.Handler
}

// newServer opens what a server needs. It does not fail because Postgres or Redis is away; run closes all of it.
func newServer(ctx context.Context, config config, trusted auth.Config, log *slog.Logger) (*server, error) {
	s := &server{config: config, process: process{log: log}}
	if err := s.open(ctx, trusted); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *server) open(ctx context.Context, trusted auth.Config) (err error) {
	config, log := s.config, s.log
	if err := s.openParts(ctx, config.processConfig, config.SyncMaxGap, live.Config{ReconcileEvery: config.ReconcileEvery}); err != nil {
		return err
	}
	if s.verifier, err = auth.NewVerifier(trusted); err != nil { //nolint:contextcheck // it ends with close, not with ctx
		return err
	}
	if s.presence != nil {
		s.tracker = presence.NewTracker(presence.Config{Store: s.presence, Logger: log})
		observeTracker(s.telemetry.Registry(), s.tracker)
	}
	limiter, err := ratelimit.New(config.mutationLimit(), redis.NewRateLimits(s.redis), log)
	if err != nil {
		return err
	}
	observe(s.telemetry.Registry(), limiter)
	if s.people, err = person.NewDirectory(s.store); err != nil {
		return err
	}
	s.sampler = verify.NewSampler(verify.SamplerConfig{
		Store: s.store, Projections: newlyunread.Audit{Store: s.store, Projection: s.copies}, Every: config.VerifyEvery, Sample: config.VerifySample, Logger: log,
	})
	s.readStates = readstate.New(s.store, s.hub)
	s.channels = channel.NewChannels(s.store, s.readStates, sending{s.hub, s.worker})
	s.deliveries = delivery.New(s.store, s.readStates, config.SyncMaxGap)

	api := graph.Config{
		Resolver: &graph.Resolver{
			ReadStates: s.readStates, Channels: s.channels, Deliveries: s.deliveries, People: s.people, Live: s.hub,
			Arrivals: s.newlyUnread, Receipts: receipt.New(s.store, s.hub),
			Inspector: inspect.New(inspect.Config{
				Store: s.store, Numbers: s.readStates, Arrivals: s.newlyUnread, Live: s.hub, Logger: log,
			}),
		},
		Logger:         log,
		Introspection:  config.Introspection,
		Origins:        config.AllowOrigin,
		RequestTimeout: config.RequestTimeout,
		Authenticate:   s.verifier.Authenticate,
		Sockets: graph.Sockets{
			PingEvery: config.PingEvery, WriteTimeout: config.WriteTimeout,
			MaxOperations: config.SocketOperations, MaxPerPerson: config.SocketsPerPerson,
		},
		MutationLimiter: limiter,
		Extensions:      s.telemetry.GraphQL(),
		Welcome:         s.people.Welcome,
	}
	if s.tracker != nil {
		api.Presence = s.tracker
	}
	if err := api.Validate(); err != nil {
		return err
	}
	s.api = graph.NewHandler(api)
	observeSockets(s.telemetry.Registry(), s.api)
	observeSampler(s.telemetry.Registry(), s.sampler)
	mux := http.NewServeMux()
	mux.Handle("/graphql", s.verifier.Middleware(s.api))
	mux.Handle("GET /me", s.verifier.Middleware(http.HandlerFunc(s.me)))
	s.handleProbes(mux)
	mux.Handle("GET /web/", web.Assets())
	if config.Inspector {
		mux.Handle("GET /inspect", web.Inspector(config.inspector))
	}
	if len(config.demo.People) > 0 {
		mux.Handle("GET /demo", web.Demo(config.demo))
	}
	if config.Playground {
		mux.Handle("/", playground.Handler(playground.Config{
			Endpoint: "/graphql", SubscriptionEndpoint: "/graphql", Token: config.playgroundToken,
		}))
	}
	s.handler = s.telemetry.Handler(mux)
	return nil
}

// observe adds what the limit on mutations has done to the metrics.
func observe(metrics prometheus.Registerer, limiter *ratelimit.Limiter) {
	counter(metrics, "tidemark_mutations_refused_total", "Mutations refused because their sender made too many.", nil,
		func() uint64 { return limiter.Stats().Refused })
	counter(metrics, "tidemark_mutations_unshared_total",
		"Mutations whose limit this process decided alone, because Redis was away.", nil,
		func() uint64 { return limiter.Stats().Unshared })
}

// run serves until ctx ends, lets what runs come to its end, and closes everything.
func (s *server) run(ctx context.Context, listener net.Listener) error {
	defer s.close(context.WithoutCancel(ctx))
	// Calls outlive the signal by the drain's length; then their contexts end.
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer endCalls()
	web := s.webServer(s.handler, s.config.RequestTimeout)
	web.BaseContext = func(net.Listener) context.Context { return calls }
	web.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(sendBuffer) // a wish
			giveUpAfter(tcp, s.config.PingEvery)
		}
		return ctx
	}
	var background sync.WaitGroup
	defer background.Wait()
	sweeping, endSweeping := context.WithCancel(ctx)
	defer endSweeping()
	background.Go(func() { s.sweep(sweeping) })
	if s.config.VerifyEvery > 0 {
		background.Go(func() { s.sampler.Run(sweeping) })
	}
	// Screens stay right for as long as there are any.
	living, endLiving := context.WithCancel(context.WithoutCancel(ctx))
	defer endLiving()
	background.Go(func() { s.live(living) })
	if s.tracker != nil {
		background.Go(func() { s.trackPresence(living) })
	}
	if !s.config.WithoutWorker {
		background.Go(func() { s.work(living) })
	}

	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.log.Info("draining", "timeout", s.config.DrainTimeout.String())
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.DrainTimeout)
	defer cancel()
	var ending sync.WaitGroup
	ending.Go(func() { s.api.Drain(draining, s.config.DrainTimeout*4/5) })
	err := web.Shutdown(draining)
	ending.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("calls were cut off: they took longer than the drain")
		endCalls()
		err = web.Close()
	}
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// sweep forgets devices that have long been silent, until ctx ends.
func (s *server) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		forgotten, err := s.forgetUnseen(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			s.log.Warn("silent devices stay for now", "error", err)
		case forgotten > 0:
			s.log.Info("forgot silent devices", "devices", forgotten)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *server) forgetUnseen(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	return s.deliveries.ForgetUnseen(ctx, time.Now().Add(-delivery.UnseenFor))
}

// close closes what newServer opened, whether it got to the end or not.
func (s *server) close(ctx context.Context) {
	if s.verifier != nil {
		s.verifier.Close()
	}
	s.closeParts(ctx)
}

// trusted says whose tokens the server takes.
func (c *config) trusted(log *slog.Logger) auth.Config {
	return auth.Config{
		Secret: c.JWTSecret, JWKSURL: c.JWKSURL, Issuer: c.JWTIssuer, Audience: c.JWTAudience, Logger: log,
	}
}
