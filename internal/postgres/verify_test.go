package postgres_test

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
	"tidemark/internal/verify"
)

// verified is two groups with something of everything in them.
type verified struct {
	*domain
	here, there id.Channel
}

func newVerified(t *testing.T) *verified {
	t.Helper()
	d := newDomain(t)
	v := &verified{domain: d, here: d.group(anna, ben, cleo), there: d.group(anna, ben)}
	say := func(sender id.User, draft channel.Draft) {
		t.Helper()
		draft.ChannelID, draft.Body = v.here, "hello"
		if _, err := d.channels.Send(t.Context(), person.Viewer{ID: sender}, draft, readstate.DefaultCap); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		d.send(anna, v.here)
		d.send(ben, v.there)
	}
	say(cleo, channel.Draft{})                         // 6
	say(anna, channel.Draft{Mentions: []id.User{ben}}) // 7
	say(anna, channel.Draft{MentionsEveryone: true})   // 8
	say(anna, channel.Draft{Mentions: []id.User{ben}}) // 9
	say(anna, channel.Draft{MentionsEveryone: true})   // 10
	d.delete(anna, v.here, 2)
	d.delete(anna, v.here, 9)
	d.delete(anna, v.here, 10)
	d.read(cleo, v.here, 8)
	d.read(anna, v.there, 3)
	return v
}

func (v *verified) run(config verify.Config) verify.Report {
	v.t.Helper()
	config.Store = v.store
	report, err := verify.Run(v.t.Context(), config)
	if err != nil {
		v.t.Fatal(err)
	}
	return report
}

// everything is all badges that somebody has, without their versions, and the sums of these.
func (v *verified) everything() (badges map[readstate.Seat]readstate.Badge, versions map[readstate.Seat]id.Seq) {
	v.t.Helper()
	badges, versions = make(map[readstate.Seat]readstate.Badge), make(map[readstate.Seat]id.Seq)
	for _, seat := range []readstate.Seat{
		{UserID: anna, ChannelID: v.here},
		{UserID: ben, ChannelID: v.here},
		{UserID: cleo, ChannelID: v.here},
		{UserID: anna, ChannelID: v.there},
		{UserID: ben, ChannelID: v.there},
	} {
		badge := v.badge(seat.UserID, seat.ChannelID)
		versions[seat] = badge.Version()
		badge.HeadVersion, badge.StateVersion = 0, 0
		badges[seat] = badge
	}
	return badges, versions
}

func TestVerifyFindsNothingWhereNothingIs(t *testing.T) {
	t.Parallel()
	v := newVerified(t)
	for _, config := range []verify.Config{{}, {Sample: 10}, {Repair: true}} {
		if report := v.run(config); report.String() != "3 people in 2 channels, 0 drifted, 0 repaired" || len(report.Lines) > 0 {
			t.Errorf("%+v: %v\n%s", config, report, strings.Join(report.Lines, "\n"))
		}
	}
}

// Drawing is as likely to come on one as on another, whatever gaps are between their ids.
func TestPeopleAreDrawnWhateverTheirIDs(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	exec(t, d.conn(), "INSERT INTO users (id) SELECT n FROM generate_series(1, 50) n UNION ALL VALUES (1000000), (2000000000)")
	const rounds = 200
	drawn := make(map[id.User]int)
	for range rounds {
		users, err := d.store.RandomPeople(t.Context(), 10)
		if err != nil || len(users) != 10 {
			t.Fatalf("%d people, %v", len(users), err)
		}
		for _, user := range users {
			drawn[user]++
		}
	}
	// Of 200 draws of 10 among 52, 38 each; by ids, those after the gaps would be drawn in every one.
	for user, times := range drawn {
		if times > 90 {
			t.Errorf("%d is drawn %d times of %d", user, times, rounds)
		}
	}
	if len(drawn) != 52 {
		t.Errorf("%d are drawn at all", len(drawn))
	}
}

// A sampler leaves out what there is too much of, and says so.
func TestBadgeDriftIsCountedToALimit(t *testing.T) {
	t.Parallel()
	v := newVerified(t)
	exec(t, v.conn(), "UPDATE channel_head SET last_deleted_seq = 0")
	drift, skipped, err := v.store.BadgeDrift(t.Context(), []id.User{ben, cleo}, 5)
	if err != nil || skipped != 1 || len(drift) != 1 || drift[0].UserID != cleo {
		t.Errorf("%v, %d skipped, %v", drift, skipped, err)
	}
	drift, skipped, err = v.store.BadgeDrift(t.Context(), []id.User{ben, cleo}, 11)
	if err != nil || skipped != 0 || len(drift) != 2 {
		t.Errorf("%v, %d skipped, %v", drift, skipped, err)
	}
}

// Somebody who is in no channel any more is looked at: what was written to them still counts as newly unread.
func TestPeopleInNoChannelAreVerified(t *testing.T) {
	t.Parallel()
	v := newVerified(t)
	if _, err := v.channels.RemoveMember(t.Context(), person.Viewer{ID: cleo}, v.here, cleo); err != nil {
		t.Fatal(err)
	}
	worker := newPipeline(t, v.store)
	if err := worker.relay(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := worker.project(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown, err := newlyunread.New(newlyunread.Config{Store: v.store}).Get(t.Context(), cleo, 10)
	if err != nil || shown.Count() == 0 {
		t.Fatalf("%+v, %v", shown, err)
	}
	if report := v.run(verify.Config{}); report.String() != "3 people in 2 channels, 0 drifted, 0 repaired" {
		t.Error(report)
	}
}

// traffic has people do all kinds of things until it is stopped.
func (d *domain) traffic(channels []id.Channel) (stop func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	var running errgroup.Group
	for _, who := range []id.User{anna, ben, cleo} {
		running.Go(func() error {
			for ctx.Err() == nil {
				err := d.anything(ctx, who, channels)
				if code := fault.CodeOf(err); err != nil && ctx.Err() == nil && code != fault.NotFound && code != fault.Forbidden {
					return err
				}
			}
			return nil
		})
	}
	return func() {
		d.t.Helper()
		cancel()
		if err := running.Wait(); err != nil {
			d.t.Error(err)
		}
	}
}

// Live traffic is never taken for drift.
func TestVerifyBesideTraffic(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	channels := []id.Channel{d.group(anna, ben, cleo), d.group(anna, ben, cleo)}
	stop := d.traffic(channels)
	for range 30 {
		report, err := verify.Run(t.Context(), verify.Config{Store: d.store})
		if err != nil || report.Drifted > 0 {
			t.Errorf("%v, %v\n%s", report, err, strings.Join(report.Lines, "\n"))
			break
		}
	}
	stop()
}
