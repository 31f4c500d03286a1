package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/delivery"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

const (
	crowd     = 4 // few, so that each is at several things at once
	strangers = 8 // whom nobody knows at first
	everybody = crowd + strangers
	groups    = 6
	callers   = 12
	calls     = 200 // of each caller
)

// Locks are taken in one order everywhere, so calls that need the same rows wait, and none is ever the victim of a
// deadlock. A call may be refused for what it asks, and for nothing else.
func TestCallsThatMeetNeverBlockOneAnother(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	people := make([]id.User, crowd)
	for i := range people {
		people[i] = id.User(i + 1)
	}
	var channels []id.Channel
	for i := range groups {
		channels = append(channels, d.group(people[i%crowd], people...))
	}

	var running errgroup.Group
	for range callers {
		running.Go(func() error {
			for range calls {
				if err := d.anything(t.Context(), people[rand.IntN(crowd)], channels); err != nil {
					switch fault.CodeOf(err) {
					case fault.NotFound, fault.Forbidden: // not a member for the moment, nor a sender, nor a creator
					default:
						return err
					}
				}
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	d.store.Close() // what its connections have counted is told at their end

	conn := d.conn()
	await(t, conn, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())")
	for what, sql := range map[string]string{
		"deadlocks":            `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`,
		"wrong member counts":  `SELECT count(*) FROM channel_head h WHERE member_count <> (SELECT count(*) FROM channel_read_state r WHERE r.channel_id = h.channel_id AND r.member)`,
		"heads off their log":  `SELECT count(*) FROM channel_head h WHERE high_water_seq <> (SELECT count(*) FROM message m WHERE m.channel_id = h.channel_id)`,
		"gaps":                 `SELECT count(*) FROM channel_head h WHERE high_water_seq <> coalesce((SELECT max(seq) FROM message m WHERE m.channel_id = h.channel_id), 0)`,
		"cursors past heads":   `SELECT count(*) FROM channel_read_state r JOIN channel_head h USING (channel_id) WHERE last_read_seq > high_water_seq`,
		"records past heads":   `SELECT count(*) FROM device_sync_state s JOIN channel_head h USING (channel_id) WHERE last_delivered_seq > high_water_seq`,
		"records of no device": `SELECT count(*) FROM device_sync_state s WHERE NOT EXISTS (SELECT FROM device d WHERE d.user_id = s.user_id AND d.device_id = s.device_id)`,
		"pairs of channels":    `SELECT count(*) - count(DISTINCT (direct_low, direct_high)) FROM channel WHERE kind = 'DIRECT'`,
		"mentions of deleted":  `SELECT count(*) FROM mention n JOIN message m USING (channel_id, seq) WHERE m.deleted_version > 0`,
		"doubled versions":     `SELECT count(*) FROM (SELECT FROM message WHERE deleted_version > 0 GROUP BY channel_id, deleted_version HAVING count(*) > 1) AS doubled`,
	} {
		if n := value[int](t, conn, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}

// anything does one thing that people do, to rows that others want as well.
func (d *domain) anything(ctx context.Context, who id.User, channels []id.Channel) error {
	viewer, service := person.Viewer{ID: who}, person.Viewer{Role: person.RoleService}
	in := channels[rand.IntN(len(channels))]
	other := id.User(rand.IntN(everybody) + 1)
	seq := id.Seq(rand.IntN(20))
	newest := 1000 + id.Seq(rand.IntN(20))
	shuffled := make([]id.Channel, len(channels))
	for i, n := range rand.Perm(len(channels)) {
		shuffled[i] = channels[n]
	}
	var err error
	switch rand.IntN(12) {
	case 0, 1, 2:
		draft := channel.Draft{ChannelID: in, Body: "hello", Mentions: []id.User{other}, ClientMessageID: fmt.Sprint(rand.IntN(20))}
		_, err = d.channels.Send(ctx, viewer, draft, readstate.DefaultCap)
	case 3, 4:
		cursors := make([]readstate.Cursor, len(shuffled))
		for i, c := range shuffled {
			cursors[i] = readstate.Cursor{ChannelID: c, UpToSeq: newest}
		}
		_, err = d.readStates.MarkManyRead(ctx, who, "phone", cursors, readstate.DefaultCap)
	case 5:
		_, err = d.readStates.MarkUnread(ctx, who, in, seq, nil, readstate.DefaultCap)
	case 6:
		newcomers := []id.User{other, id.User(rand.IntN(everybody) + 1), id.User(rand.IntN(everybody) + 1)}
		_, err = d.channels.AddMembers(ctx, service, in, newcomers)
	case 7:
		_, err = d.channels.RemoveMember(ctx, service, in, other)
	case 8:
		_, err = d.channels.Delete(ctx, viewer, in, seq)
	case 9:
		if other == who {
			return nil
		}
		_, err = d.channels.Create(ctx, viewer, channel.New{Kind: channel.Direct, Members: []id.User{other}})
	case 10:
		cursors := make([]delivery.Confirmed, len(shuffled))
		for i, c := range shuffled {
			cursors[i] = delivery.Confirmed{ChannelID: c, Seq: newest}
		}
		_, err = d.deliveries.Confirm(ctx, who, "phone", nil, cursors)
	case 11:
		_, err = d.deliveries.Forget(ctx, who, "phone")
	}
	return err
}

func TestTwoPeopleMakeOneDirectChannel(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	for low := id.User(1); low < 100; low += 2 {
		made := make([]id.Channel, 4)
		var running errgroup.Group
		for i := range made {
			running.Go(func() error {
				viewer, other := low, low+1
				if i%2 == 1 {
					viewer, other = other, viewer
				}
				got, err := d.channels.Create(t.Context(), person.Viewer{ID: viewer}, channel.New{Kind: channel.Direct, Members: []id.User{other}})
				made[i] = got.ID
				return err
			})
		}
		if err := running.Wait(); err != nil {
			t.Fatal(err)
		}
		if one := slices.Compact(made); len(one) != 1 {
			t.Errorf("channels %v", one)
		}
	}
}

// Whoever takes an id first has it. Ids of ours step around those that a product has given out.
func TestAnIDIsOfOneChannel(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	next := d.group(anna) + 1
	viewer := person.Viewer{ID: anna}
	taken := channel.New{ID: next, Kind: channel.Group}
	if _, err := d.channels.Create(t.Context(), viewer, taken); err != nil {
		t.Fatal(err)
	}
	_, err := d.channels.Create(t.Context(), viewer, taken)
	wantCode(t, err, fault.Conflict)
	if got := d.group(anna); got != next+1 {
		t.Errorf("channel %d, want %d", got, next+1)
	}

	results := make(chan error, 8)
	for range cap(results) {
		go func() {
			_, err := d.channels.Create(t.Context(), viewer, channel.New{ID: 7, Kind: channel.Group})
			results <- err
		}()
	}
	made := 0
	for range cap(results) {
		if err := <-results; err == nil {
			made++
		} else {
			wantCode(t, err, fault.Conflict)
		}
	}
	if made != 1 {
		t.Errorf("channel 7 was made %d times", made)
	}
}

func TestMembersComeAndGoAtOnce(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna)
	var running errgroup.Group
	for n := range 8 {
		running.Go(func() error {
			for user := ben; user < ben+20; user++ {
				var err error
				if n%2 == 0 {
					_, err = d.channels.AddMembers(t.Context(), person.Viewer{ID: anna}, group, []id.User{user, user + 1})
				} else {
					_, err = d.channels.RemoveMember(t.Context(), person.Viewer{ID: anna}, group, user)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	seen, err := d.channels.Get(t.Context(), person.Viewer{ID: anna}, group)
	if err != nil {
		t.Fatal(err)
	}
	page, err := d.channels.Members(t.Context(), group, channel.MaxPage, 0)
	if err != nil {
		t.Fatal(err)
	}
	if seen.MemberCount != len(page.Members) {
		t.Errorf("member count %d, and %d members", seen.MemberCount, len(page.Members))
	}
}
