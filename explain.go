package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/readstate"
)

type explainCommand struct {
	localDatabase `embed:""`

	User    string `required:"" help:"Whose badge: the decimal form of a positive 64-bit integer."`
	Channel string `required:"" help:"The badge of which channel: likewise."`
}

// Run prints what explainBadge answers. Whoever can read the database needs no role.
func (c *explainCommand) Run(ctx context.Context) error {
	user, userErr := id.ParseUser(c.User)
	channel, channelErr := id.ParseChannel(c.Channel)
	switch {
	case userErr != nil:
		return errors.New("--user must be the decimal form of a positive 64-bit integer")
	case channelErr != nil:
		return errors.New("--channel must be the decimal form of a positive 64-bit integer")
	}
	url, err := c.existing(ctx)
	if err != nil {
		return err
	}
	store, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConnections: 1})
	if err != nil {
		return err
	}
	defer store.Close()
	inspector := inspect.New(inspect.Config{Store: store})
	explained, err := inspector.Explain(ctx, person.Viewer{ID: user}, user, channel, readstate.MaxCap)
	if fault.CodeOf(err) == fault.NotFound {
		return fmt.Errorf("person %s is not in channel %s", user, channel)
	}
	if err != nil {
		return err
	}
	return printExplanation(os.Stdout, explained)
}

// printExplanation writes the sentence, and a line for each field that explainBadge has.
func printExplanation(w io.Writer, e inspect.Explanation) error {
	unread, mentions := readstate.CountTo(e.Countable, readstate.DefaultCap), readstate.CountTo(e.Naming, readstate.DefaultCap)
	device := "-"
	if e.LastMovedByDeviceID != nil {
		device = strconv.Quote(string(*e.LastMovedByDeviceID))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "%s\n\n", e.Summary()) // what cannot be written is told by Flush
	for _, line := range []struct {
		field string
		value any
	}{
		{"channelId", e.ChannelID},
		{"channelName", e.ChannelName},
		{"userId", e.UserID},
		{"highWaterSeq", e.HighWaterSeq},
		{"lastReadSeq", e.LastReadSeq},
		{"receiptSeq", e.ReceiptSeq},
		{"joinedSeq", e.JoinedSeq},
		{"version", e.Version()},
		{"readEpoch", e.ReadEpoch},
		{"muted", e.Muted},
		{"unreadUpperBound", e.UnreadUpperBound()},
		{"unread", unread.Label()},
		{"mentions", mentions.Label()},
		{"deletedInGap", e.DeletedInGap},
		{"ownInGap", e.OwnInGap},
		{"lastMovedAt", e.LastMovedAt.UTC().Format(time.RFC3339Nano)},
		{"lastMovedBy", e.LastMovedBy},
		{"lastMovedByDeviceId", device},
	} {
		_, _ = fmt.Fprintf(table, "%s\t%v\n", line.field, line.value)
	}
	for _, d := range e.Devices {
		_, _ = fmt.Fprintf(table, "device %q\tholds up to %d, confirmed at %s\n", string(d.DeviceID), d.LastDeliveredSeq, d.ConfirmedAt.UTC().Format(time.RFC3339Nano))
	}
	return table.Flush()
}
