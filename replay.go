package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"tidemark/internal/channel"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
	"tidemark/internal/replay"
	"tidemark/migrations"
)

// replayedIDs is where the ids of a replay begin: far above any that a product or the service gives out.
const replayedIDs = 1 << 60

type replayCommand struct {
	database `embed:""`

	File    string `arg:"" type:"existingfile" help:"The trace, tab-separated, gzipped or not."`
	Speed   speed  `default:"max" help:"How many times faster than it happened, or max."`
	Into    string `enum:"fresh,current" default:"fresh" help:"fresh: a database of its own, dropped afterwards. current: the one that is in use, whose people and channels are left alone."`
	Seed    uint64 `default:"1" help:"Decides what people do besides writing. The same seed does the same again."`
	Workers int    `default:"32" help:"How many acts are at work at once."`
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

// Run replays the trace and fails where a badge is wrong.
func (c *replayCommand) Run(ctx context.Context) (err error) {
	current, release, err := c.postgres(ctx)
	if err != nil {
		return err
	}
	defer closing(release, &err)
	if c.Into == "current" {
		return c.replay(ctx, current)
	}
	name := "tidemark_replay_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	url, drop, err := postgres.CreateDatabase(ctx, current, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop(context.WithoutCancel(ctx))) }()
	return c.replay(ctx, url)
}

func (c *replayCommand) replay(ctx context.Context, url string) error {
	if err := migrations.Up(ctx, url); err != nil {
		return err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConnections: c.Workers})
	if err != nil {
		return err
	}
	defer store.Close()
	largest, err := store.LargestID(ctx)
	if err != nil {
		return err
	}
	readStates := readstate.New(store)
	report, err := replay.Run(ctx, replay.Config{
		File: c.File, Speed: float64(c.Speed), Seed: c.Seed, Offset: max(largest, replayedIDs), Workers: c.Workers,
		Progress: os.Stderr, Channels: channel.NewChannels(store, readStates), ReadStates: readStates,
	})
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
