package e2e_test

import (
	"slices"
	"testing"
	"time"

	"tidemark/internal/id"
)

// readReceipt is who has read a message.
type readReceipt struct {
	ChannelID              string
	Seq                    int64
	ReadCount              int
	AudienceCount          int
	AllRead                bool
	Readers, UnreadMembers userPage
}

type userPage struct {
	Nodes    []struct{ ID string }
	PageInfo struct {
		HasNextPage bool
		EndCursor   *string
	}
}

// ids are those of a page, ascending.
func (p userPage) ids() []string {
	ids := make([]string, len(p.Nodes))
	for i, user := range p.Nodes {
		ids[i] = user.ID
	}
	return ids
}

const receiptFields = ` { channelId seq readCount audienceCount allRead
	readers { nodes { id } pageInfo { hasNextPage endCursor } } unreadMembers { nodes { id } pageInfo { hasNextPage endCursor } } }`

func (c client) receipt(channel string, seq int64) readReceipt {
	c.t.Helper()
	return ask[struct{ ReadReceipt readReceipt }](c, `query ($in: ID!, $seq: Seq!) { readReceipt(channelId: $in, seq: $seq)`+receiptFields+` }`,
		vars{"in": channel, "seq": seq}).ReadReceipt
}

// isRead checks a whole receipt.
func (c client) isRead(what, channel string, seq int64, readers, unread []id.User) {
	c.t.Helper()
	checkReceipt(c.t, what, c.receipt(channel, seq), channel, seq, readers, unread)
}

func checkReceipt(t *testing.T, what string, r readReceipt, channel string, seq int64, readers, unread []id.User) {
	t.Helper()
	texts := func(people []id.User) []string {
		all := make([]string, len(people))
		for i, p := range people {
			all[i] = p.String()
		}
		return all
	}
	if r.ChannelID != channel || r.Seq != seq || r.ReadCount != len(readers) || r.AudienceCount != len(readers)+len(unread) ||
		r.AllRead != (len(unread) == 0 && len(readers) > 0) ||
		!slices.Equal(r.Readers.ids(), texts(readers)) || !slices.Equal(r.UnreadMembers.ids(), texts(unread)) {
		t.Errorf("%s: %+v; want readers %v, unread %v", what, r, readers, unread)
	}
}

func (c client) share(share bool) {
	c.t.Helper()
	shared := ask[struct {
		SetReadReceiptSharing struct{ SharesReadReceipts bool }
	}](c, `mutation ($share: Boolean!) { setReadReceiptSharing(share: $share) { sharesReadReceipts } }`, vars{"share": share})
	expect(c.t, "shares", shared.SetReadReceiptSharing.SharesReadReceipts, share)
}

func TestReceiptsCases(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, x, y, z := s.as(1), s.as(2), s.as(3), s.as(4)
	who := func(people ...id.User) []id.User { return people }
	channel := s.group(1, 2, 3, 4)
	a.sends(channel, 1)
	a.isRead("G01", channel, 1, nil, who(2, 3, 4))
	a.sends(channel, 1)
	x.markRead(channel, 2)
	a.isRead("G02", channel, 1, who(2), who(3, 4))
	y.isRead("G03, to any member", channel, 2, who(2), who(3, 4))
	x.markUnread(channel, 1)
	a.isRead("G07", channel, 2, who(2), who(3, 4))
	y.markRead(channel, 2)
	z.markRead(channel, 1)
	a.isRead("G04", channel, 1, who(2, 3, 4), nil)
	s.backend().remove(channel, 2)
	s.backend().add(channel, 2)
	a.isRead("G05", channel, 1, who(3, 4), nil)
	a.isRead("G10", channel, 2, who(3), who(4))
	s.backend().remove(channel, 3)
	a.isRead("G06", channel, 2, nil, who(4))
	x.refused("NOT_FOUND", `query ($in: ID!) { readReceipt(channelId: $in, seq: 1) { readCount } }`, vars{"in": channel})

	// G08: whoever does not share is seen by nobody, and sees nobody.
	z.share(false)
	a.isRead("G08, to others", channel, 1, nil, nil)
	z.isRead("G08, to themselves", channel, 1, nil, nil)
	z.markRead(channel, 2)
	expect(t, "G08, the badge", z.badge(channel).Unread.Count, 0)
	z.share(true)
	a.isRead("shared again", channel, 2, who(4), nil)
}

func TestReceiptListsArePaged(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const people = 25
	channel := s.group(members(1, people)...)
	s.as(1).sends(channel, 1)
	for user := id.User(2); user <= people; user += 2 {
		s.as(user).markRead(channel, 1)
	}
	for part, first := range map[string]id.User{"readers": 2, "unreadMembers": 3} {
		var listed []string
		pages := 0
		for more, after := true, (*string)(nil); more; pages++ {
			page := ask[struct{ ReadReceipt map[string]userPage }](s.as(1), `query ($in: ID!, $after: String) {
				readReceipt(channelId: $in, seq: 1) { `+part+`(first: 5, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } }`,
				vars{"in": channel, "after": after}).ReadReceipt[part]
			listed = append(listed, page.ids()...)
			more, after = page.PageInfo.HasNextPage, page.PageInfo.EndCursor
		}
		var want []string
		for user := first; user <= people; user += 2 {
			want = append(want, user.String())
		}
		if !slices.Equal(listed, want) || pages != 3 {
			t.Errorf("%s in %d pages: %v, want %v", part, pages, listed, want)
		}
	}
}

func TestThePeerOfADirectChannel(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	channel := a.create("DIRECT", "", 2)
	a.sends(channel, 3)
	peer := func(c client) string {
		t.Helper()
		r := c.do(`query ($id: ID!) { channel(id: $id) { peerReadSeq } badges { nodes { channel { peerReadSeq } } } }`, vars{"id": channel})
		return string(r.Data)
	}
	is := func(seq string) string {
		return `{"channel":{"peerReadSeq":` + seq + `},"badges":{"nodes":[{"channel":{"peerReadSeq":` + seq + `}}]}}`
	}
	expect(t, "nothing is read", peer(a), is("0"))
	b.markRead(channel, 2)
	expect(t, "two are read", peer(a), is("2"))
	expect(t, "who sends has read", peer(b), is("3"))
	b.markUnread(channel, 1)
	expect(t, "it is never taken back", peer(a), is("2"))
	a.share(false)
	expect(t, "to who does not share", peer(a), is("null"))
	expect(t, "and of who does not", peer(b), is("null"))
	group := s.group(1, 2)
	r := a.do(`query ($id: ID!) { channel(id: $id) { peerReadSeq } }`, vars{"id": group})
	expect(t, "a group", string(r.Data), `{"channel":{"peerReadSeq":null}}`)
}

// TestReceiptsAreToldLive follows a message over a socket to one process, while people read by way of another.
func TestReceiptsAreToldLive(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	here, there := e.serve(t), e.serve(t)
	channel := here.group(1, 2, 3)
	here.as(1).sends(channel, 2)
	socket := here.as(1).dial()
	t.Cleanup(socket.cut)
	socket.subscribe("receipt", `subscription ($in: ID!, $seq: Seq!) { receiptChanged(channelId: $in, seq: $seq)`+receiptFields+` }`,
		vars{"in": channel, "seq": 1})
	var last readReceipt
	var ended string
	look := func() {
		for _, f := range socket.of("receipt") {
			if f.Type != "next" {
				ended = ending{f}.code()
				continue
			}
			var r struct {
				Data struct{ ReceiptChanged readReceipt }
			}
			decode(t, string(f.Payload), &r)
			last = r.Data.ReceiptChanged
		}
	}
	told := func(what string, readers, unread []id.User) {
		t.Helper()
		within(t, soon, what, func() bool {
			look()
			return last.ReadCount == len(readers) && last.AudienceCount == len(readers)+len(unread)
		})
		checkReceipt(t, what, last, channel, 1, readers, unread)
	}
	told("at first", nil, []id.User{2, 3})
	there.as(3).markRead(channel, 2)
	told("one has read", []id.User{3}, []id.User{2})
	there.as(2).send(channel, "hello")
	told("one has written", []id.User{2, 3}, nil)
	there.as(2).share(false)
	told("one shares no more", []id.User{3}, nil)
	there.backend().remove(channel, 3)
	told("one is gone", nil, nil)
	there.as(1).remove(channel, 1)
	within(t, soon, "it ends for who leaves", func() bool { look(); return ended == "NOT_FOUND" })
	expect(t, "what is watched", here.metric("tidemark_live_watched_messages"), 0)
}

// Where Redis is away, who asks is answered as ever.
func TestReceiptsWithoutRedis(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	s := e.serve(t)
	channel := s.group(1, 2, 3)
	s.as(1).sends(channel, 1)
	s.as(2).markRead(channel, 1)
	e.flushRedis(t)
	s.as(1).isRead("Redis is flushed", channel, 1, []id.User{2}, []id.User{3})
	e.redis.Kill()
	s.as(3).markRead(channel, 1)
	s.as(1).isRead("Redis is away", channel, 1, []id.User{2, 3}, nil)
	e.redis.Start()
}

// What a mutation answers is known to the very next query, whichever process answers it.
func TestOwnReadsAreSeenAtOnce(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	here, there := e.serve(t), e.serve(t)
	channel := here.group(1, 2)
	began := time.Now()
	for seq := int64(1); seq <= 50 && time.Since(began) < patience; seq++ {
		here.as(1).sends(channel, 1)
		here.as(2).markRead(channel, seq)
		there.as(2).isRead("right after it", channel, seq, []id.User{2}, nil)
	}
}
