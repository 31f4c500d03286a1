package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidemark/internal/newlyunread"
	"tidemark/internal/postgres"
	"tidemark/internal/redis"
	"tidemark/internal/verify"
)

const (
	// verifyTimeout bounds one statement of a verification, which counts message by message.
	verifyTimeout = 5 * time.Minute
	// repairLockTimeout bounds a repair's wait for its turn in a busy channel.
	repairLockTimeout = time.Minute
)

type verifyCommand struct {
	localPlace `embed:""`

	Sample int  `default:"0" help:"Verify so many people, drawn at random, and all of the channels that they are in. 0: everybody."`
	Repair bool `env:"-" help:"Put right what is found, from the messages, and print it. A channel is held up for as long as its messages take to be counted. Open screens follow within --reconcile-every."`
	Quiet  bool `help:"Show no progress."`
}

// Help is printed by --help.
func (*verifyCommand) Help() string {
	return "Prints a line for each row that is not what the messages say, and one that sums up. The exit code is 1 where there " +
		"is such a row, also with --repair, which found it: verify once more to see that nothing is left. It is 2 where it could not " +
		"be verified, for want of a database for instance. May run beside the servers. " +
		"Where a database is named and no Redis, copies of who is newly unread are not looked at, and the last line says so."
}

// unverified says why badges could not be verified. It ends the program with 2, for 1 is drift.
type unverified struct{ error }

// ExitCode is what the program ends with.
func (unverified) ExitCode() int { return 2 }

// Unwrap returns the reason.
func (u unverified) Unwrap() error { return u.error }

// Run compares what badges are made from with the messages, prints what drifted, and fails where something did.
func (c *verifyCommand) Run(ctx context.Context) error {
	report, err := c.verify(ctx)
	for _, line := range report.Lines { // also those that were found before it failed
		fmt.Println(line)
	}
	if err != nil {
		return unverified{err}
	}
	if c.DatabaseURL != "" && c.RedisURL == "" {
		fmt.Printf("%s; copies not looked at: no --redis-url\n", report)
	} else {
		fmt.Println(report)
	}
	if report.Drifted > 0 {
		return verify.ErrDrift
	}
	return nil
}

func (c *verifyCommand) verify(ctx context.Context) (report verify.Report, err error) {
	url, redisURL, err := c.existing(ctx)
	if err != nil {
		return report, err
	}
	store, err := postgres.Open(ctx, postgres.Config{
		URL: url, MaxConnections: 1, StatementTimeout: verifyTimeout, LockTimeout: repairLockTimeout,
	})
	if err != nil {
		return report, err
	}
	defer store.Close()
	var copies verify.Projections
	if redisURL != "" {
		client, err := redis.Open(redisURL)
		if err != nil {
			return report, err
		}
		defer closing(client.Close, &err)
		copies = newlyunread.Audit{Store: store, Projection: redis.NewNewlyUnread(client)}
	}
	return verify.Run(ctx, verify.Config{
		Store: store, Projections: copies, Sample: c.Sample, Repair: c.Repair, Progress: progressTo(c.Quiet),
	})
}

// progressTo says where a command's progress is shown.
func progressTo(quiet bool) io.Writer {
	if quiet {
		return nil
	}
	return os.Stderr
}

// observeSampler adds what the server's own sampling found to the metrics.
func observeSampler(metrics prometheus.Registerer, sampler *verify.Sampler) {
	counter(metrics, "tidemark_verify_people_total", "People drawn at random and compared with the truth.", nil,
		func() int64 { return sampler.Stats().People })
	counter(metrics, "tidemark_verify_skipped_total", "Badges with too many messages to count, and people that took too long.", nil,
		func() int64 { return sampler.Stats().Skipped })
	const drift = "What was found to be something else than the truth, each time that it was found."
	counter(metrics, "tidemark_verify_drift_total", drift, prometheus.Labels{"kind": "badge"},
		func() int64 { return sampler.Stats().Badges })
	counter(metrics, "tidemark_verify_drift_total", drift, prometheus.Labels{"kind": "newly_unread"},
		func() int64 { return sampler.Stats().NewlyUnread })
}
