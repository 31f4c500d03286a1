package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"tidemark/internal/postgres"
	"tidemark/internal/verify"
)

// verifyTimeout bounds one statement of a verification, which counts message by message.
const verifyTimeout = 5 * time.Minute

type verifyCommand struct {
	database `embed:""`

	Sample int  `default:"0" help:"Verify so many people, drawn at random. 0: everybody."`
	Quiet  bool `help:"Show no progress."`
}

// Run recounts badges message by message, prints those that drifted, and fails where there is one.
func (c *verifyCommand) Run(ctx context.Context) (err error) {
	url, release, err := c.postgres(ctx)
	if err != nil {
		return err
	}
	defer closing(release, &err)
	store, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConnections: 1, StatementTimeout: verifyTimeout})
	if err != nil {
		return err
	}
	defer store.Close()
	var progress io.Writer = os.Stderr
	if c.Quiet {
		progress = nil
	}
	report, err := verify.Run(ctx, verify.Config{Store: store, Sample: c.Sample, Progress: progress})
	if err != nil {
		return err
	}
	for _, drift := range report.Drift {
		fmt.Println(drift)
	}
	fmt.Println(report)
	if len(report.Drift) > 0 {
		return verify.ErrDrift
	}
	return nil
}
