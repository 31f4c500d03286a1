package postgres_test

import (
	"strings"
	"testing"

	"tidemark/internal/channel"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/verify"
)

// What the rows say must be what the messages say; where it is not, verify tells so, and of nobody else.
func TestVerify(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	here, there := d.group(anna, ben, cleo), d.group(anna, ben)
	for range 5 {
		d.send(anna, here)
		d.send(ben, there)
	}
	draft := channel.Draft{ChannelID: here, Body: "hello", Mentions: []id.User{ben}}
	if _, err := d.channels.Send(t.Context(), person.Viewer{ID: anna}, draft, 99); err != nil {
		t.Fatal(err)
	}
	d.delete(anna, here, 2)
	d.read(cleo, here, 3)
	run := func(sample int) verify.Report {
		t.Helper()
		report, err := verify.Run(t.Context(), verify.Config{Store: d.store, Sample: sample})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	for _, sample := range []int{0, 10} {
		if report := run(sample); len(report.Drift) > 0 || report.People == 0 || sample == 0 && report.People != 3 {
			t.Errorf("sample %d: %v, %v", sample, report, report.Drift)
		}
	}
	conn := d.conn()
	for _, fault := range []struct{ damage, repair string }{
		{`UPDATE channel_head SET last_deleted_seq = 0 WHERE channel_id = $1`, `UPDATE channel_head SET last_deleted_seq = 2 WHERE channel_id = $1`},
		{`UPDATE channel_head SET high_water_seq = 7 WHERE channel_id = $1`, `UPDATE channel_head SET high_water_seq = 6 WHERE channel_id = $1`},
		{`DELETE FROM mention WHERE channel_id = $1`, `INSERT INTO mention VALUES (2, $1, 6)`},
	} {
		exec(t, conn, fault.damage, int64(here))
		report := run(0)
		if len(report.Drift) == 0 || !strings.Contains(report.String(), "3 people") {
			t.Errorf("%s is not found: %v", fault.damage, report)
		}
		for _, drift := range report.Drift {
			if drift.ChannelID != here {
				t.Errorf("%s: %v", fault.damage, drift)
			}
		}
		exec(t, conn, fault.repair, int64(here))
	}
	if report := run(0); len(report.Drift) > 0 {
		t.Errorf("repaired: %v", report.Drift)
	}
}
