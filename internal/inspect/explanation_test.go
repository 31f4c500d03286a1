package inspect_test

import (
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/inspect"
	"tidemark/internal/readstate"
)

func TestSummaries(t *testing.T) {
	t.Parallel()
	const moved = " on 1 December 2026 at 10:12:30 UTC"
	phone := id.Device("phone")
	for _, test := range []struct {
		name string
		e    inspect.Explanation
		want string
	}{
		{
			"nothing was ever sent",
			inspect.Explanation{LastMovedBy: inspect.Joined},
			`Your badge for general says 0: there is no message in it yet; you have been there since you joined` + moved + `.`,
		},
		{
			"all is read",
			inspect.Explanation{
				Badge: readstate.Badge{HighWaterSeq: 7, LastReadSeq: 7}, LastMovedBy: inspect.MarkRead, LastMovedByDeviceID: &phone,
			},
			`Your badge for general says 0: its newest message is number 7, and you have read up to it; you got there by reading on the device "phone"` + moved + `.`,
		},
		{
			"a gap, of which something does not count",
			inspect.Explanation{
				Badge: readstate.Badge{HighWaterSeq: 12, LastReadSeq: 4, Countable: 5}, DeletedInGap: 2, OwnInGap: 1, LastMovedBy: inspect.MarkUnread,
			},
			`Your badge for general says 5: its newest message is number 12 and you have read up to 4, which leaves 8, less 2 deleted and 1 of your own; you got there by marking messages unread` + moved + `.`,
		},
		{
			"more than is shown, and muted",
			inspect.Explanation{
				Badge: readstate.Badge{HighWaterSeq: 150, Countable: 100, Muted: true}, LastMovedBy: inspect.Sent,
			},
			`Your badge for general says 99+: its newest message is number 150 and you have read up to 0, which leaves 150; you got there by sending a message` + moved + `; you have muted it, so that it is in no total.`,
		},
	} {
		test.e.ChannelName = "general"
		test.e.LastMovedAt = time.Date(2026, 12, 1, 11, 12, 30, 0, time.FixedZone("CET", 3600))
		if got := test.e.Summary(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}
