package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/readstate"
	"tidemark/internal/receipt"
)

// dora is one more than the others need.
const dora id.User = 4

func (d *domain) receipts() *receipt.Receipts { return receipt.New(d.store, nil) }

// wantReceipt compares a receipt, its lists, and what a watch of it says.
func (d *domain) wantReceipt(what string, viewer id.User, in id.Channel, seq id.Seq, readers, unread []id.User) {
	d.t.Helper()
	if err := d.compareReceipt(d.t.Context(), viewer, in, seq, readers, unread); err != nil {
		d.t.Errorf("%s: message %d to %d: %v", what, seq, viewer, err)
	}
}

func (d *domain) compareReceipt(ctx context.Context, viewer id.User, in id.Channel, seq id.Seq, readers, unread []id.User) error {
	r := d.receipts()
	counted, err := r.Get(ctx, viewer, in, seq)
	if err != nil {
		return err
	}
	audience := len(readers) + len(unread)
	want := receipt.Receipt{ChannelID: in, Seq: seq, ReadCount: len(readers), AudienceCount: audience}
	if counted != want || counted.AllRead() != (len(unread) == 0 && audience > 0) {
		return fmt.Errorf("counted %+v, want %+v", counted, want)
	}
	for part, people := range map[receipt.Part][]id.User{receipt.Readers: readers, receipt.Unread: unread} {
		var listed []id.User
		for more, after := true, id.User(0); more; {
			page, err := r.List(ctx, viewer, counted, part, 2, after)
			if err != nil {
				return err
			}
			for _, p := range page.People {
				listed, after = append(listed, p.ID), p.ID
			}
			more = page.HasNext
		}
		slices.Sort(people)
		if !slices.Equal(listed, people) {
			return fmt.Errorf("readers %v: listed %v, want %v", part, listed, people)
		}
	}
	watched, err := r.Watch(ctx, in, seq, []id.User{viewer})
	if err != nil {
		return err
	}
	sees := watched.Sights[viewer]
	if sees == receipt.Full && (watched.AudienceCount != audience || watched.Unread.Count() != len(unread)) {
		return fmt.Errorf("watched %+v, want %d of %d unread", watched, len(unread), audience)
	}
	if sees != receipt.Full && (sees != receipt.Blind || audience > 0) {
		return fmt.Errorf("sight %v", sees)
	}
	return nil
}

func (d *domain) leave(who id.User, from id.Channel) {
	d.t.Helper()
	if _, err := d.channels.RemoveMember(d.t.Context(), person.Viewer{Role: person.RoleService}, from, who); err != nil {
		d.t.Fatal(err)
	}
}

func (d *domain) join(to id.Channel, who ...id.User) {
	d.t.Helper()
	if _, err := d.channels.AddMembers(d.t.Context(), person.Viewer{Role: person.RoleService}, to, who); err != nil {
		d.t.Fatal(err)
	}
}

func (d *domain) share(who id.User, share bool) {
	d.t.Helper()
	if err := d.receipts().SetSharing(d.t.Context(), who, share); err != nil {
		d.t.Fatal(err)
	}
}

func TestReceiptsOfAGroup(t *testing.T) {
	t.Parallel()
	people := func(ids ...id.User) []id.User { return ids }
	for name, test := range map[string]func(d *domain, group id.Channel){
		"G01 nobody has read": func(d *domain, group id.Channel) {
			d.wantReceipt("", anna, group, 1, nil, people(ben, cleo, dora))
		},
		"G02 a later message is read": func(d *domain, group id.Channel) {
			d.send(anna, group)
			d.read(ben, group, 2)
			d.wantReceipt("", anna, group, 1, people(ben), people(cleo, dora))
		},
		"G03 one of three has read": func(d *domain, group id.Channel) {
			d.read(cleo, group, 1)
			d.wantReceipt("to its sender", anna, group, 1, people(cleo), people(ben, dora))
			d.wantReceipt("to its reader", cleo, group, 1, people(cleo), people(ben, dora))
			d.wantReceipt("to another", dora, group, 1, people(cleo), people(ben, dora))
		},
		"G04 all have read": func(d *domain, group id.Channel) {
			for _, who := range people(ben, cleo, dora) {
				d.read(who, group, 1)
			}
			d.wantReceipt("", anna, group, 1, people(ben, cleo, dora), nil)
		},
		"G05 a reader leaves and comes back": func(d *domain, group id.Channel) {
			for _, who := range people(ben, cleo, dora) {
				d.read(who, group, 1)
			}
			d.leave(ben, group)
			d.join(group, ben)
			d.wantReceipt("", anna, group, 1, people(cleo, dora), nil)
			d.send(anna, group)
			d.wantReceipt("after the return", anna, group, 2, nil, people(ben, cleo, dora))
			if _, err := d.receipts().Get(t.Context(), ben, group, 1); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("who joined later is told of an earlier message: %v", err)
			}
		},
		"G06 the only reader is removed": func(d *domain, group id.Channel) {
			d.read(ben, group, 1)
			d.leave(ben, group)
			d.wantReceipt("", anna, group, 1, nil, people(cleo, dora))
		},
		"G07 a reader marks unread": func(d *domain, group id.Channel) {
			d.read(ben, group, 1)
			if _, err := d.readStates.MarkUnread(t.Context(), ben, group, 1, nil, 99); err != nil {
				t.Fatal(err)
			}
			d.wantReceipt("", anna, group, 1, people(ben), people(cleo, dora))
		},
		"G08 somebody does not share": func(d *domain, group id.Channel) {
			d.share(ben, false)
			d.read(ben, group, 1)
			d.read(cleo, group, 1)
			d.wantReceipt("to others", anna, group, 1, people(cleo), people(dora))
			d.wantReceipt("to themselves", ben, group, 1, nil, nil)
			if b := d.badge(ben, group); b.Countable != 0 || b.LastReadSeq != 1 {
				t.Errorf("their own badge is %+v", b)
			}
			d.leave(ben, group)
			d.join(group, ben)
			d.send(anna, group)
			d.wantReceipt("who comes back", anna, group, 2, nil, people(cleo, dora))
			d.read(ben, group, 2)
			d.share(ben, true)
			d.wantReceipt("shared again", anna, group, 2, people(ben), people(cleo, dora))
			d.wantReceipt("and seen again", ben, group, 2, people(ben), people(cleo, dora))
			if share, err := d.receipts().Sharing(t.Context(), ben); err != nil || !share {
				t.Errorf("shares: %v, %v", share, err)
			}
		},
		"G10 who comes back has not read what was unread": func(d *domain, group id.Channel) {
			for range 4 {
				d.send(anna, group)
			}
			d.leave(ben, group)
			d.join(group, ben)
			d.read(ben, group, 5)
			for seq := id.Seq(1); seq <= 5; seq++ {
				d.wantReceipt("", anna, group, seq, nil, people(cleo, dora))
			}
		},
		"sending is reading": func(d *domain, group id.Channel) {
			d.send(ben, group)
			d.wantReceipt("", anna, group, 1, people(ben), people(cleo, dora))
			d.wantReceipt("their own", anna, group, 2, nil, people(anna, cleo, dora))
		},
		"a deleted message keeps its readers": func(d *domain, group id.Channel) {
			d.read(ben, group, 1)
			d.delete(anna, group, 1)
			d.wantReceipt("", anna, group, 1, people(ben), people(cleo, dora))
		},
		"nobody is left": func(d *domain, group id.Channel) {
			for _, who := range people(ben, cleo, dora) {
				d.leave(who, group)
			}
			d.wantReceipt("", anna, group, 1, nil, nil)
		},
		"a void read": func(d *domain, group id.Channel) {
			if _, err := d.readStates.MarkUnread(t.Context(), ben, group, 1, nil, 99); err != nil {
				t.Fatal(err)
			}
			old := 0
			_, err := d.readStates.MarkRead(t.Context(), ben, "", readstate.Cursor{ChannelID: group, UpToSeq: 1, ReadEpoch: &old}, 99)
			if err != nil {
				t.Fatal(err)
			}
			d.wantReceipt("", anna, group, 1, nil, people(ben, cleo, dora))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDomain(t)
			group := d.group(anna, ben, cleo, dora)
			d.send(anna, group)
			test(d, group)
		})
	}
}

// Whoever may not know of a message is told nothing, not even that its channel exists.
func TestReceiptsAreForMembers(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	d.send(anna, group)
	d.read(ben, group, 1)
	d.join(group, dora)
	for what, ask := range map[string]struct {
		viewer   id.User
		in       id.Channel
		seq      id.Seq
		argument string
	}{
		"a stranger":              {cleo, group, 1, "channelId"},
		"no channel":              {anna, group + 1, 1, "channelId"},
		"no message yet":          {anna, group, 2, "seq"},
		"before the first":        {anna, group, 0, "seq"},
		"from before they joined": {dora, group, 1, "seq"},
	} {
		_, err := d.receipts().Get(t.Context(), ask.viewer, ask.in, ask.seq)
		var f *fault.Error
		if fault.CodeOf(err) != fault.NotFound || !errors.As(err, &f) || f.Argument != ask.argument {
			t.Errorf("%s: %v", what, err)
		}
		watched, err := d.receipts().Watch(t.Context(), ask.in, ask.seq, []id.User{ask.viewer})
		if err != nil || fault.CodeOf(watched.Sights[ask.viewer].Fault()) != fault.NotFound {
			t.Errorf("%s watches: %+v, %v", what, watched, err)
		}
		for _, part := range []receipt.Part{receipt.Readers, receipt.Unread} {
			claimed := receipt.Receipt{ChannelID: ask.in, Seq: ask.seq, AudienceCount: 1}
			if page, err := d.receipts().List(t.Context(), ask.viewer, claimed, part, 10, 0); err != nil || len(page.People) > 0 {
				t.Errorf("%s lists %v, %v", what, page, err)
			}
		}
	}
	for _, seq := range []id.Seq{-1, id.MaxSeq + 1} {
		if _, err := d.receipts().Get(t.Context(), anna, group, seq); fault.CodeOf(err) != fault.BadUserInput {
			t.Errorf("seq %d: %v", seq, err)
		}
	}
	for _, first := range []int{0, receipt.MaxPage + 1} {
		if _, err := d.receipts().List(t.Context(), anna, receipt.Receipt{AudienceCount: 1}, receipt.Readers, first, 0); fault.CodeOf(err) != fault.BadUserInput {
			t.Errorf("first %d: %v", first, err)
		}
	}
}

func TestTheOtherOneOfADirectChannel(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	made, err := d.channels.Create(t.Context(), person.Viewer{ID: anna}, channel.New{Kind: channel.Direct, Members: []id.User{ben}})
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, viewer id.User, seq *id.Seq) {
		t.Helper()
		seen, err := d.channels.Get(t.Context(), person.Viewer{ID: viewer}, made.ID)
		if err != nil || (seen.PeerReadSeq == nil) != (seq == nil) || seq != nil && *seq != *seen.PeerReadSeq {
			t.Errorf("%s: %+v, %v", what, seen, err)
		}
	}
	seq := func(n id.Seq) *id.Seq { return &n }
	want("at first", anna, seq(0))
	d.send(anna, made.ID)
	d.send(anna, made.ID)
	d.read(ben, made.ID, 1)
	want("one is read", anna, seq(1))
	want("who sent has read", ben, seq(2))
	if _, err := d.readStates.MarkUnread(t.Context(), ben, made.ID, 1, nil, 99); err != nil {
		t.Fatal(err)
	}
	want("marked unread", anna, seq(1))
	d.wantReceipt("the first", anna, made.ID, 1, []id.User{ben}, nil)
	d.wantReceipt("the second", anna, made.ID, 2, nil, []id.User{ben})
	d.share(ben, false)
	want("the other does not share", anna, nil)
	want("and sees nothing", ben, nil)
	d.read(ben, made.ID, 2)
	d.share(ben, true)
	want("shared again", anna, seq(2))
	group := d.group(anna, ben)
	if seen, err := d.channels.Get(t.Context(), person.Viewer{ID: anna}, group); err != nil || seen.PeerReadSeq != nil {
		t.Errorf("a group: %+v, %v", seen, err)
	}
}

// G09, and that no index is ever given out twice, whoever joins at the same time and comes back.
func TestMembersAreNumberedInOrder(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	const people, hands = 10_000, 8
	ids := make([]id.User, people)
	for i := range ids {
		ids[i] = id.User(100_000_000_000_000_000 + rand.Int64N(800_000_000_000_000_000))
	}
	group := d.group(ids[0])
	var joining errgroup.Group
	joining.SetLimit(hands)
	for batch := range slices.Chunk(ids[1:], 400) {
		joining.Go(func() error {
			_, err := d.channels.AddMembers(t.Context(), person.Viewer{Role: person.RoleService}, group, batch)
			return err
		})
	}
	if err := joining.Wait(); err != nil {
		t.Fatal(err)
	}
	d.send(ids[0], group)
	watched, err := d.receipts().Watch(t.Context(), group, 1, nil)
	if err != nil || watched.AudienceCount != people-1 || watched.Unread.Count() != people-1 {
		t.Fatalf("%d of %d, %v", watched.Unread.Count(), watched.AudienceCount, err)
	}
	if len(watched.Unread) > 1250 {
		t.Errorf("the bitmap has %d bytes", len(watched.Unread))
	}
	conn := d.conn()
	before := value[int](t, conn, "SELECT member_index FROM channel_read_state WHERE user_id = $1", ids[7])
	d.leave(ids[7], group)
	d.join(group, ids[7], 5, 6)
	if now := value[int](t, conn, "SELECT member_index FROM channel_read_state WHERE user_id = $1", ids[7]); now != before {
		t.Errorf("who comes back has index %d, and had %d", now, before)
	}
	given := value[bool](t, conn, `SELECT min(member_index) = 0 AND max(member_index) = count(*) - 1
		AND count(DISTINCT member_index) = count(*) AND max(member_index) = (SELECT members_ever - 1 FROM channel_head)
		FROM channel_read_state`)
	if !given {
		t.Error("indexes are not those from 0 on, each once")
	}
}

// Who stops sharing while they are being made a member does not share there either.
func TestSharingAndJoiningAtOnce(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	group := d.group(anna, ben)
	d.leave(ben, group)
	conn, looking := d.conn(), d.conn()
	exec(t, conn, "BEGIN")
	exec(t, conn, "SELECT FROM channel_read_state WHERE user_id = $1 FOR UPDATE", ben) // stops the joining half-way
	var both sync.WaitGroup
	both.Go(func() { d.join(group, ben) })
	await(t, looking, someoneWaits)
	set := make(chan struct{})
	both.Go(func() {
		defer close(set)
		d.share(ben, false)
	})
	waiting := func() bool {
		return value[int](t, looking, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 2
	}
	for began := time.Now(); !waiting() && !isClosed(set) && time.Since(began) < patience; {
		runtime.Gosched()
	}
	exec(t, conn, "COMMIT")
	both.Wait()
	d.send(anna, group)
	d.wantReceipt("who has just stopped", anna, group, 1, nil, nil)
	d.share(ben, true)
	d.wantReceipt("who shares again", anna, group, 1, nil, []id.User{ben})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A receipt reads the members of its channel, and of nothing else.
func TestAReceiptReadsItsMembersAlone(t *testing.T) {
	t.Parallel()
	const others, members = 400, 100
	var seen recorder
	d := openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t), Tracer: &seen})
	conn := d.conn()
	people := make([]id.User, members)
	for i := range people {
		people[i] = id.User(i + 1)
	}
	group := d.group(people[0], people[1:]...)
	d.send(people[0], group)
	exec(t, conn, `INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, joined_seq, member_index)
		SELECT u, c, 0, 0, u FROM generate_series(1, $1::int) AS u, generate_series(1, $2::int) AS c`, members, others)
	exec(t, conn, "INSERT INTO channel_head (channel_id, activity) SELECT c, c FROM generate_series(1, $1::int) AS c", others)
	exec(t, conn, "INSERT INTO message (channel_id, seq, id, sender_id, created_at, body) SELECT c, n, n, 1, now(), '' FROM generate_series(1, $1::int) AS c, generate_series(1, 20) AS n", others)
	exec(t, conn, "ANALYZE")
	ask := func() {
		t.Helper()
		d.wantReceipt("", people[0], group, 1, nil, people[1:])
	}
	ask()
	seen.take()
	ask()
	explained := seen.connect(t)
	for _, s := range seen.take() {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			exec(t, explained, "SET plan_cache_mode = "+mode)
			plan := explain(t, explained, s)
			if rows := plan.rowsRead(); rows > 3*members {
				t.Errorf("%s: %d rows: %s", mode, rows, plan)
			}
		}
	}
}
