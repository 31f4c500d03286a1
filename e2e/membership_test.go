package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"tidemark/internal/id"
)

func TestM01NothingFromBeforeJoining(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(2)
	b.sends(channel, 50)
	b.add(channel, 1)
	expect(t, "unread", a.badge(channel).Unread.Count, 0)
	expect(t, "messages", len(a.messages(channel, 50)), 0)
	a.refused("NOT_FOUND", `mutation ($id: ID!) { deleteMessage(channelId: $id, seq: 50) { id } }`, vars{"id": channel})
	b.sends(channel, 2)
	expect(t, "unread", a.badge(channel).Unread.Count, 2)
	expect(t, "messages", len(a.messages(channel, 50)), 2)
	expect(t, "synced messages", len(a.on("new").sync(channel, nil).Messages), 2)
	expect(t, "unread", a.markRead(channel, 52).Badge.Unread.Count, 0)

	// Nor does a mark unread reach back to before it, or adding a member again move anything.
	b.add(channel, 1)
	expect(t, "the cursor", a.markUnread(channel, 1).Badge.LastReadSeq, 50)
	expect(t, "unread", a.badge(channel).Unread.Count, 2)
}

func TestM02ComingBackIsJoining(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.sends(channel, 5)
	version := a.badge(channel).Version
	a.remove(channel, 1)
	b.sends(channel, 4)
	b.add(channel, 1)
	back := a.badge(channel)
	expect(t, "unread on return", back.Unread.Count, 0)
	if back.Version <= version {
		t.Errorf("the version fell from %d to %d", version, back.Version)
	}
	b.sends(channel, 1)
	expect(t, "unread", a.badge(channel).Unread.Count, 1)
	expect(t, "messages", len(a.messages(channel, 50)), 1)
}

func TestM03LeavingTakesTheBadgeAlong(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	left, kept := s.group(1, 2), s.group(1, 2)
	b.sends(left, 6)
	b.send(left, "for you", 1)
	b.sends(kept, 3)
	expect(t, "the total", a.total().Unread.Count, 10)
	a.remove(left, 1)
	after := a.total()
	expect(t, "the total", after.Unread.Count, 3)
	expect(t, "channels with unread", after.UnreadChannels, 1)
	expect(t, "mentions", after.Mentions.Count, 0)
	expect(t, "badges, those of muted channels too", len(a.page("includeMuted: true").Nodes), 1)
}

func TestM04ChannelOfOthers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	never, left := s.group(2), s.group(1, 2)
	b.sends(never, 9)
	b.sends(left, 9)
	a.remove(left, 1)
	before := contents(t, s.database)
	for _, mutation := range []string{markRead, markUnread} {
		variables := func(channel string) vars { return vars{"channel": channel, "seq": 4} }
		none := a.do(mutation, variables("999"))
		expect(t, "the code", none.code(), "NOT_FOUND")
		expect(t, "the answer for one never joined", a.do(mutation, variables(never)).body, none.body)
		expect(t, "the answer for one left", a.do(mutation, variables(left)).body, none.body)
	}
	for _, m := range a.markManyRead(vars{"channelId": never, "upToSeq": 4}, vars{"channelId": left, "upToSeq": 4}, vars{"channelId": "999", "upToSeq": 4}) {
		if m.Outcome != "NOT_FOUND" || m.Badge != nil {
			t.Errorf("one of several is answered with %+v", m)
		}
	}
	unchanged(t, s.database, before)
}

func TestM05RemovedWhileOffline(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, c := s.as(1), s.as(2), s.as(3)
	channel, byService, kept := b.create("GROUP", "ours", 1, 3), s.group(1, 3), s.group(1, 3)
	for _, channel := range []string{channel, byService, kept} {
		c.sends(channel, 2)
	}
	expect(t, "the total", a.total().Unread.Count, 6)
	b.remove(channel, 1)
	expect(t, "the total", a.total().Unread.Count, 4)
	s.backend().remove(byService, 1)
	expect(t, "the total", a.total().Unread.Count, 2)
	expect(t, "channels on reconnect", len(a.on("phone").syncDevice(nil)), 1)
}

func TestM06MuteAndUnmute(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.sends(channel, 2)
	expect(t, "muted", a.mute(channel, true).Muted, true)
	b.sends(channel, 3)
	expect(t, "unread while muted", a.badge(channel).Unread.Count, 5)
	expect(t, "the total while muted", a.total().Unread.Count, 0)
	expect(t, "muted", a.mute(channel, false).Muted, false)
	expect(t, "unread", a.badge(channel).Unread.Count, 5)
	expect(t, "the total", a.total().Unread.Count, 5)
	version := a.badge(channel).Version
	expect(t, "the version where it is so already", a.mute(channel, false).Version, version)
	expect(t, "somebody else's badge", b.badge(channel).Muted, false)
}

func TestM07MutedIsLeftOutEverywhere(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	muted, heard := s.group(1, 2), s.group(1, 2)
	a.mute(muted, true)
	b.sends(muted, 2)
	b.send(muted, "for you", 1)
	b.sendAs(vars{"channel": muted, "body": "for all", "everyone": true})
	b.sends(heard, 1)

	// total checks that the default list, the one of unread, me and GET /me leave it out.
	total := a.total()
	expect(t, "the total", total.Unread.Count, 1)
	expect(t, "its mentions", total.Mentions.Count, 0)
	own := a.badge(muted)
	expect(t, "its own unread", own.Unread.Count, 4)
	expect(t, "its own mentions", own.Mentions.Count, 2)
	both := a.page("onlyUnread: true, includeMuted: true")
	expect(t, "unread with muted", len(both.Nodes), 2)
	expect(t, "the total with muted", both.Total, total)
}

func TestM08DeletedIsNotUnread(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	s := e.serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.sends(channel, 5)
	b.delete(channel, 2)
	b.delete(channel, 5)
	b.delete(channel, 5)
	expect(t, "unread", a.badge(channel).Unread.Count, 3)
	expect(t, "unread after a reconnect", e.serve(t).as(1).badge(channel).Unread.Count, 3)
	for _, seq := range []int64{1, 3, 4} {
		b.delete(channel, seq)
	}
	none := a.badge(channel)
	expect(t, "unread", none.Unread.Count, 0)
	expect(t, "the bound", none.UnreadUpperBound, 5)
	expect(t, "channels with unread", a.total().UnreadChannels, 0)
	b.sends(channel, 1)
	expect(t, "unread", a.badge(channel).Unread.Count, 1)
}

func TestM09DeletedMention(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.send(channel, "for you", 1)
	b.sendAs(vars{"channel": channel, "body": "for all", "everyone": true})
	b.sendAs(vars{"channel": channel, "body": "for you and all", "mentions": []id.User{1}, "everyone": true})
	for seq := int64(3); seq >= 0; seq-- {
		badge := a.badge(channel)
		expect(t, "mentions", badge.Mentions.Count, int(seq))
		expect(t, "unread", badge.Unread.Count, int(seq))
		if seq > 0 {
			b.delete(channel, seq)
		}
	}
}

func TestM10ReadingClearsMentions(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.send(channel, "hello")
	head := b.send(channel, "for you", 1).Message.Seq
	before := a.badge(channel)
	expect(t, "unread", before.Unread.Count, 2)
	expect(t, "mentions", before.Mentions.Count, 1)
	a.markRead(channel, head)
	after := a.badge(channel)
	expect(t, "unread", after.Unread.Count, 0)
	expect(t, "mentions", after.Mentions.Count, 0)
	a.markUnread(channel, head)
	expect(t, "mentions after a mark unread", a.badge(channel).Mentions.Count, 1)
}

func TestM11MentionCountsOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, c, channel := s.as(1), s.as(2), s.as(3), s.group(1, 2, 3)
	a.send(channel, "for C, for C again, for oneself and for a stranger", 3, 3, 1, 4)
	for _, wanted := range []struct {
		who      client
		mentions int
	}{{b, 0}, {c, 1}} {
		badge := wanted.who.badge(channel)
		expect(t, "unread", badge.Unread.Count, 1)
		expect(t, "mentions", badge.Mentions.Count, wanted.mentions)
		expect(t, "whether it names the viewer", wanted.who.messages(channel, 1)[0].MentionsViewer, wanted.mentions == 1)
	}
	a.sendAs(vars{"channel": channel, "body": "for all, and C", "mentions": []id.User{3}, "everyone": true})
	expect(t, "mentions", b.badge(channel).Mentions.Count, 1)
	expect(t, "mentions", c.badge(channel).Mentions.Count, 2)

	// A stranger who joins later was not named, and one's own messages name nobody to oneself.
	a.add(channel, 4)
	expect(t, "mentions", s.as(4).badge(channel).Mentions.Count, 0)
	a.markUnread(channel, 1)
	expect(t, "mentions", a.badge(channel).Mentions.Count, 0)
}

func TestM12TotalIsTheSumOfWhatCanBeListed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	for i := range 12 {
		channel := s.group(1, 2)
		b.sends(channel, i)
		if i%3 == 1 {
			a.markRead(channel, int64(i/2))
		}
		if i%4 == 2 {
			b.delete(channel, int64(i))
		}
		if i%5 == 3 {
			a.mute(channel, true)
		}
		if i%6 == 5 {
			a.send(channel, "own")
			a.markUnread(channel, 2)
		}
	}
	all := a.overview()
	for _, badge := range all.Nodes {
		countable := 0
		for _, m := range a.messages(badge.Channel.ID, 500) {
			if m.Seq > badge.LastReadSeq && !m.Deleted && m.Sender.ID != "1" {
				countable++
			}
		}
		expect(t, "messages that are counted and can be listed", countable, badge.Unread.Count)
	}
	for _, filter := range []string{"onlyUnread: false", "onlyUnread: true"} {
		for size := 1; size <= 13; size++ {
			sum := 0
			for _, page := range a.pages(filter, size) {
				expect(t, "the total of a page", page.Total, all.Total)
				for _, badge := range page.Nodes {
					sum += badge.Unread.Count
				}
			}
			expect(t, fmt.Sprintf("the sum over pages of %d with %s", size, filter), sum, all.Total.Unread.Count)
		}
	}
}

// pages returns all pages of badges of a size.
func (c client) pages(filter string, size int) []badgePage {
	c.t.Helper()
	var pages []badgePage
	for after := ""; ; {
		page := c.page(fmt.Sprintf("%s, first: %d%s", filter, size, after))
		pages = append(pages, page)
		expect(c.t, "whether there is a page before", page.PageInfo.HasPreviousPage, len(pages) > 1)
		if !page.PageInfo.HasNextPage {
			return pages
		}
		expect(c.t, "the size of a page that is not the last", len(page.Nodes), size)
		after = fmt.Sprintf(", after: %q", *page.PageInfo.EndCursor)
	}
}

func TestM13FewUnreadAmongMany(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := s.as(1), s.as(2)
	var channels []string
	for _, made := range batch[struct{ ID string }](s.backend(), 500, func(int) string {
		return `createChannel(input: {kind: GROUP, memberIds: [1, 2]}) { id }`
	}) {
		channels = append(channels, made.ID)
	}
	unread := []string{channels[400], channels[250], channels[7]}
	for _, channel := range []string{channels[7], channels[250], channels[400]} {
		b.sends(channel, 1)
	}
	pages := a.pages("onlyUnread: true", 2)
	expect(t, "pages", len(pages), 2)
	var listed []string
	for _, page := range pages {
		for _, badge := range page.Nodes {
			listed = append(listed, badge.Channel.ID)
		}
	}
	expect(t, "the unread", strings.Join(listed, " "), strings.Join(unread, " "))
	expect(t, "the total", a.total().Unread.Count, 3)
}

func TestM14FailedSendLeavesNoTrace(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_LOCK_TIMEOUT=200ms")
	a, b, channel := s.as(1), s.as(2), s.group(1, 2)
	b.sendAs(vars{"channel": channel, "body": "hello", "clientId": "x", "everyone": true})
	before := contents(t, s.database)

	b.refused("CONFLICT", sendMessage, vars{"channel": channel, "body": "another", "clientId": "x", "everyone": true})
	// The sender's row is the last that a send writes: this one fails with the head moved already.
	release := hold(t, s.database, "SELECT FROM channel_read_state WHERE user_id = 2 AND channel_id = $1::text::bigint FOR UPDATE", channel)
	b.refused("UNAVAILABLE", sendMessage, vars{"channel": channel, "body": "hello", "everyone": true})
	release()
	unchanged(t, s.database, before)

	sent := b.send(channel, "hello")
	expect(t, "the seq", sent.Message.Seq, 2)
	badge := a.badge(channel)
	expect(t, "unread", badge.Unread.Count, 2)
	expect(t, "mentions", badge.Mentions.Count, 1)
}

func TestM14SenderIsRemovedWhileItWaits(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	a.sends(channel, 1)
	remove := hold(t, s.database, "UPDATE channel_head SET member_count = 1 WHERE channel_id = $1::text::bigint", channel)
	var sending sync.WaitGroup
	sending.Go(func() { s.as(2).refused("NOT_FOUND", sendMessage, vars{"channel": channel, "body": "hello"}) })
	awaitBlocked(t, s.database)
	left := "UPDATE channel_read_state SET member = false WHERE user_id = 2 AND channel_id = $1::text::bigint"
	if _, err := connect(t, s.database).Exec(t.Context(), left, channel); err != nil {
		t.Fatal(err)
	}
	remove()
	sending.Wait()
	expect(t, "the next seq", a.send(channel, "hello").Message.Seq, 2)
}
