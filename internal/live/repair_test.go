package live_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/id"
	"tidemark/internal/live"
	"tidemark/internal/verify"
)

// A repair publishes nothing: screens follow when they are compared with the store, in larger versions.
func TestScreensFollowARepair(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	p := e.start(live.Config{ReconcileEvery: 500 * time.Millisecond}, nil)
	conn, err := pgx.Connect(t.Context(), e.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, damage := range []string{
		"UPDATE channel_head SET high_water_seq = high_water_seq + 2, last_deleted_seq = 0",
		"UPDATE channel_head SET last_deleted_seq = 0",
		"UPDATE channel_read_state SET last_read_seq = last_read_seq + 9 WHERE user_id = 2",
		"DELETE FROM mention",
	} {
		group := p.group(anna, ben)
		for range 3 {
			p.send(anna, group, ben)
		}
		p.delete(anna, group, 2)
		if _, err := conn.Exec(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
		screen := p.watch(ben, live.Watch{})
		screen.await("it shows what is wrong", func() bool {
			b := screen.badges[group]
			return b.Countable != 2 || b.Naming != 2
		})
		wrong := screen.badges[group]
		report, err := verify.Run(t.Context(), verify.Config{Store: p.store, Repair: true})
		if err != nil || report.Repaired == 0 {
			t.Fatalf("%v, %v", report, err)
		}
		unread := 2
		if wrong.LastReadSeq > 3 {
			unread = 0 // how far they had read is lost
		}
		screen.await("it shows what is right", func() bool {
			b := screen.badges[group]
			return b.Countable == unread && b.Naming == unread && b.HighWaterSeq == 3 && b.Version() > wrong.Version()
		})
		p.send(anna, group, ben)
		screen.await("and what comes next", func() bool {
			truth, total := p.truth(ben, false)
			return screen.badges[group] == truth[group] && screen.badges[group].Countable == unread+1 && screen.total == total
		})
		p.read(ben, group, id.MaxSeq)
		screen.stream.Close() // the next is to show what the store says
	}
}
