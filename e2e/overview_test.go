package e2e_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
)

// glance returns a badge as the list of badges has it.
func (c client) glance(channel string) badge {
	c.t.Helper()
	return find(c.t, c.page("includeMuted: true"), channel)
}

// badge returns a badge that is the same wherever it can be asked for. Nobody may write meanwhile.
func (c client) badge(channel string) badge {
	c.t.Helper()
	b := find(c.t, c.overview(), channel)
	expect(c.t, "the badge as a sync of the channel has it", c.on("another device").sync(channel, nil).Badge, b)
	return b
}

// total returns the total, which is the same wherever it can be asked for. Nobody may write meanwhile.
func (c client) total() total {
	c.t.Helper()
	return c.overview().Total
}

// overview returns all badges. It checks that the lists, the totals and GET /me agree. Nobody may write meanwhile.
func (c client) overview() badgePage {
	c.t.Helper()
	surfaces := ask[struct {
		All, Shown, Unread badgePage
		Me                 struct{ BadgeTotal total }
	}](c, `{ all: badges(includeMuted: true, first: 500)`+pageFields+` shown: badges(first: 500)`+pageFields+`
		unread: badges(onlyUnread: true, first: 500)`+pageFields+` me { badgeTotal`+totalFields+` } }`, nil)

	var shown, unread []badge
	var messages, mentions int
	for _, b := range surfaces.All.Nodes {
		b.check(c.t)
		if b.Muted {
			continue
		}
		shown = append(shown, b)
		if b.Unread.Count > 0 {
			unread = append(unread, b)
		}
		messages += b.Unread.atLeast()
		mentions += b.Mentions.atLeast()
	}
	if !slices.Equal(surfaces.Shown.Nodes, shown) || !slices.Equal(surfaces.Unread.Nodes, unread) {
		c.t.Errorf("of %+v the default list has %+v, the one of unread %+v", surfaces.All.Nodes, surfaces.Shown.Nodes, surfaces.Unread.Nodes)
	}
	sum := total{Unread: counted(messages), UnreadChannels: len(unread), Mentions: counted(mentions)}
	expect(c.t, "the total", surfaces.All.Total, sum)
	expect(c.t, "the total of the default list", surfaces.Shown.Total, sum)
	expect(c.t, "the total of the list of unread", surfaces.Unread.Total, sum)
	expect(c.t, "the total of me", surfaces.Me.BadgeTotal, sum)

	type icon struct {
		UnreadChannels int    `json:"unread_channels"`
		UnreadLabel    string `json:"unread_label"`
		Mentions       int    `json:"mentions"`
	}
	var told icon
	r := c.get("/me")
	expect(c.t, "the status of GET /me", r.status, http.StatusOK)
	decode(c.t, r.body, &told)
	expect(c.t, "GET /me", told, icon{sum.UnreadChannels, sum.Unread.Label, sum.Mentions.Count})
	return surfaces.All
}

// check finds what contradicts itself within a badge.
func (b badge) check(t *testing.T) {
	t.Helper()
	expect(t, "the bound", int64(b.UnreadUpperBound), max(0, b.HighWaterSeq-b.LastReadSeq))
	expect(t, "the count of unread", b.Unread, counted(b.Unread.atLeast()))
	expect(t, "the count of mentions", b.Mentions, counted(b.Mentions.atLeast()))
	if b.Unread.Count > b.UnreadUpperBound || b.Mentions.Count > b.Unread.Count {
		t.Errorf("a badge has more unread than there can be: %+v", b)
	}
}

// counted is how a number is shown.
func counted(n int) count {
	if n > 99 {
		return count{Count: 99, Capped: true, Label: "99+"}
	}
	return count{Count: n, Label: strconv.Itoa(n)}
}

// atLeast is the number that is counted, or one past the cap.
func (c count) atLeast() int {
	if c.Capped {
		return c.Count + 1
	}
	return c.Count
}

// find returns the badge of a channel that must be on the page.
func find(t *testing.T, page badgePage, channel string) badge {
	t.Helper()
	for _, b := range page.Nodes {
		if b.Channel.ID == channel {
			return b
		}
	}
	t.Errorf("channel %s has no badge", channel)
	return badge{}
}
