package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/embedded"
	"tidemark/internal/live"
	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
	"tidemark/internal/redis"
	"tidemark/internal/replay"
	"tidemark/migrations"
)

const (
	// replayedIDs is where the ids of a replay begin: far above any that a product or the service gives out.
	replayedIDs = 1 << 60
	// hubConnections is how many connections to Postgres a hub has, beside those of the acts.
	hubConnections = 8
	// linkTimeout bounds the wait for a hub's link to Redis, and linkPoll is how often to look for it.
	linkTimeout = 10 * time.Second
	linkPoll    = 10 * time.Millisecond
)

type replayCommand struct {
	localPlace `embed:""`

	File    string `arg:"" type:"existingfile" help:"The trace, tab-separated, gzipped or not."`
	Speed   speed  `default:"max" help:"How many times faster than it happened, or max."`
	Into    string `enum:"fresh,current" default:"fresh" help:"fresh: a database of its own, dropped afterwards. current: the one that is in use, whose people and channels are left alone."`
	Seed    uint64 `default:"1" help:"Decides what people do besides writing. The same seed does the same again."`
	Workers int    `default:"32" help:"How many acts are at work at once."`
	Screens int    `default:"300" help:"How many subscribers watch meanwhile, each of whom must see the truth at the end. 0: nobody does, and no Redis is needed."`
}

// speed is how many times faster than it happened. Zero is as fast as can be.
type speed float64

// UnmarshalText reads a flag.
func (s *speed) UnmarshalText(text []byte) error {
	if string(text) == "max" {
		*s = 0
		return nil
	}
	times, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(times >= 1) || math.IsInf(times, 0) { // written so that NaN fails
		return errors.New("must be max, or a number from 1")
	}
	*s = speed(times)
	return nil
}

// Validate names the flag that is not what it may be.
func (c *replayCommand) Validate() error {
	if c.Screens < 0 || c.Screens > replay.MaxScreens {
		return fmt.Errorf("--screens must be from 0 to %d", replay.MaxScreens)
	}
	return nil
}

// Run replays the trace and fails where a badge is wrong.
func (c *replayCommand) Run(ctx context.Context) (err error) {
	current, redisURL, release, err := c.engines(ctx)
	if err != nil {
		return err
	}
	defer closing(release, &err)
	if c.Into == "current" {
		return c.replay(ctx, current, redisURL)
	}
	name := "tidemark_replay_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	url, drop, err := postgres.CreateDatabase(ctx, current, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx))) }()
	return c.replay(ctx, url, redisURL)
}

// engines returns the Postgres to work on, the Redis where somebody watches, and how to let them go.
func (c *replayCommand) engines(ctx context.Context) (databaseURL, redisURL string, release func() error, err error) {
	if c.Screens == 0 {
		databaseURL, release, err = localDatabase{c.dataDir, c.database}.postgres(ctx)
		return databaseURL, "", release, err
	}
	engines, err := embedded.Open(ctx, embedded.Config{
		DataDir: c.DataDir, PostgresURL: c.DatabaseURL, RedisURL: c.RedisURL, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return "", "", nil, err
	}
	return engines.PostgresURL(), engines.RedisURL(), engines.Close, nil
}

func (c *replayCommand) replay(ctx context.Context, databaseURL, redisURL string) (err error) {
	if err := migrations.Up(ctx, databaseURL); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: databaseURL, MaxConnections: c.Workers + hubConnections})
	if err != nil {
		return err
	}
	defer store.Close()
	largest, err := store.LargestID(ctx)
	if err != nil {
		return err
	}
	workers := []*newlyunread.Worker{newlyunread.NewWorker(newlyunread.WorkerConfig{Queue: store})}
	config := replay.Config{
		File: c.File, Speed: float64(c.Speed), Seed: c.Seed, Offset: max(largest, replayedIDs), Workers: c.Workers,
		Progress: os.Stderr, Screens: c.Screens, NewlyUnread: newlyunread.New(newlyunread.Config{Store: store}), Queue: store,
		Receipts: receipt.New(store, nil),
	}
	if c.Screens == 0 {
		readStates := readstate.New(store, nil)
		config.ReadStates, config.Channels = readStates, channel.NewChannels(store, readStates, nil)
		return c.run(ctx, config, workers...)
	}

	// Half of the subscribers are where everything is written, and half in a process that only hears of it.
	apart, err := postgres.Open(ctx, postgres.Config{URL: databaseURL, MaxConnections: hubConnections})
	if err != nil {
		return err
	}
	defer apart.Close()
	hubs, clients, stop, err := startHubs(ctx, redisURL, store, apart)
	defer closing(stop, &err)
	if err != nil {
		return err
	}
	copies := []newlyunread.Projection{redis.NewNewlyUnread(clients[0]), redis.NewNewlyUnread(clients[1])}
	workers = []*newlyunread.Worker{
		newlyunread.NewWorker(newlyunread.WorkerConfig{Queue: store, Projection: copies[0], Announcer: hubs[0]}),
		newlyunread.NewWorker(newlyunread.WorkerConfig{Queue: apart, Projection: copies[1], Announcer: hubs[1]}),
	}
	readStates := readstate.New(store, hubs[0])
	config.ReadStates, config.Channels = readStates, channel.NewChannels(store, readStates, sending{hubs[0], workers[0]})
	config.NewlyUnread = newlyunread.New(newlyunread.Config{Store: store, Projection: copies[0], Announcer: hubs[0]})
	config.Queue = copied{store, redis.NewNewlyUnread(clients[0])}
	for _, hub := range hubs {
		config.Processes = append(config.Processes, hub)
	}
	return c.run(ctx, config, workers...)
}

// copied is the work that is left until copies have all that has arrived, too.
type copied struct {
	*postgres.Store
	copies *redis.NewlyUnread
}

// Pending implements replay.Queue.
func (c copied) Pending(ctx context.Context, partitions []newlyunread.Partition) ([]newlyunread.Partition, error) {
	pending, err := c.Store.Pending(ctx, partitions)
	if err != nil || len(pending) > 0 {
		return pending, err
	}
	positions, err := c.Positions(ctx)
	if err != nil {
		return nil, err
	}
	return c.copies.Behind(ctx, slices.DeleteFunc(positions, func(m newlyunread.Mark) bool { return !slices.Contains(partitions, m.Partition) }))
}

// run replays while workers work, and tells what came of it.
func (c *replayCommand) run(ctx context.Context, config replay.Config, workers ...*newlyunread.Worker) error {
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, worker := range workers {
		running.Go(func() {
			if err := worker.Run(working); err != nil {
				slog.Error("a worker has ended", "error", err)
			}
		})
	}
	report, err := replay.Run(ctx, config)
	stop()
	running.Wait()
	if err == nil {
		fmt.Println(report)
	}
	for _, detail := range report.Details {
		fmt.Println("  wrong:", detail)
	}
	if err == nil && report.Wrong > 0 {
		err = errors.New("the replay came out wrong")
	}
	return err
}

// startHubs runs a hub on each store, as in a process of its own, and returns when they hear each other. stop must be
// called in any case.
func startHubs(ctx context.Context, redisURL string, stores ...*postgres.Store) (hubs []*live.Hub, clients []*redis.Client, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	ended := make([]error, len(stores))
	stop = func() error {
		cancel()
		running.Wait()
		err := errors.Join(ended...)
		for _, client := range clients {
			err = errors.Join(err, client.Close())
		}
		return err
	}
	for i, store := range stores {
		client, err := redis.Open(redisURL)
		if err != nil {
			return nil, clients, stop, err
		}
		clients = append(clients, client)
		if err := client.Ping(ctx); err != nil {
			return nil, clients, stop, err
		}
		past := delivery.New(store, readstate.New(store, nil), delivery.DefaultMaxGap)
		hub := live.NewHub(store, past, redis.NewBroker(client, redis.BrokerConfig{}), live.Config{})
		hubs = append(hubs, hub)
		running.Go(func() { ended[i] = hub.Run(ctx) })
	}
	for _, hub := range hubs {
		if err := linked(ctx, hub); err != nil {
			return nil, clients, stop, err
		}
	}
	return hubs, clients, stop, nil
}

// linked waits until a hub's link is up. What is published before is lost to whoever's is not, and found only later.
func linked(ctx context.Context, hub *live.Hub) error {
	ctx, cancel := context.WithTimeoutCause(ctx, linkTimeout, fmt.Errorf("the link to Redis is not up after %v", linkTimeout))
	defer cancel()
	look := time.NewTicker(linkPoll)
	defer look.Stop()
	for !hub.Linked() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
