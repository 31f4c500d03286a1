package main

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/id"
)

// data makes what is measured on, in the order of the files' names. Each is one statement: what Tidemark would have
// written message by message is written at once.
//
//go:embed data/*.sql
var data embed.FS

// Who and what the data are about.
const (
	smallChannel id.Channel = 1
	largeChannel id.Channel = 2
	longChannel  id.Channel = 3
	badgeChannel id.Channel = 1000 // and those that follow
	crowdChannel id.Channel = 2000 // of the large crowd; the small one's follows

	sender    id.User = 1      // is in all of them
	latecomer id.User = 60_000 // comes back to longChannel
	fewReader id.User = 60_001 // is in fewBadges of the channels for badges
	allReader id.User = 60_002 // is in allBadges of them

	crowdSender id.User = 60_003  // is in all channels of the crowds
	firstViewer id.User = 100_000 // of the large crowd, whom the small one follows

	smallMembers = 4
	largeMembers = 50_000
	fewBadges    = 50
	allBadges    = 500

	// readUpTo is the newest message of smallChannel and largeChannel at first. Everybody has read it.
	readUpTo id.Seq = 100
	// heldBeforeGap is how many messages of longChannel the device with the largest gap holds.
	heldBeforeGap = 1000
	// newDeletions is how many messages of longChannel were deleted while its devices were away, all along it.
	newDeletions = 100
)

// messages is how many longChannel has.
func (l *lab) messages() int { return heldBeforeGap + l.gaps[len(l.gaps)-1] }

func (l *lab) load(ctx context.Context) error {
	args := pgx.NamedArgs{
		"small_channel": smallChannel, "large_channel": largeChannel, "long_channel": longChannel,
		"badge_channel": badgeChannel, "sender": sender, "latecomer": latecomer, "few_reader": fewReader,
		"all_reader": allReader, "small_members": smallMembers, "large_members": largeMembers,
		"few_badges": fewBadges, "all_badges": allBadges, "read_up_to": readUpTo, "messages": l.messages(),
		"deletions": newDeletions, "crowd_channel": crowdChannel, "crowd_sender": crowdSender,
		"first_viewer": firstViewer, "large_crowd": l.large().size, "small_crowd": l.small().size,
	}
	files, err := data.ReadDir("data")
	if err != nil {
		return err
	}
	for _, file := range files {
		l.say("making data: %s", file.Name())
		sql, err := data.ReadFile("data/" + file.Name())
		if err != nil {
			return err
		}
		if _, err := l.admin.Exec(ctx, string(sql), args); err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return nil
}
