package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/person"
)

// support returns the client of somebody with the support role, who has badges of their own too.
func (s *server) support(user id.User) client {
	s.t.Helper()
	return s.bearing(sign(s.t, person.Viewer{ID: user, Role: person.RoleSupport}))
}

type explanation struct {
	ChannelID, ChannelName, UserID, Summary string
	HighWaterSeq, LastReadSeq, ReceiptSeq   int64
	JoinedSeq, Version                      int64
	ReadEpoch, UnreadUpperBound             int
	DeletedInGap, OwnInGap                  int
	Muted                                   bool
	Unread, Mentions                        count
	LastMovedBy, LastMovedAt                string
	LastMovedByDeviceID                     *string
	Devices                                 []struct {
		DeviceID, ConfirmedAt string
		LastDeliveredSeq      int64
	}
}

const explanationFields = ` { channelId channelName userId highWaterSeq lastReadSeq receiptSeq joinedSeq version readEpoch muted unreadUpperBound
	unread { count capped label } mentions { count capped label } deletedInGap ownInGap lastMovedAt lastMovedByDeviceId lastMovedBy
	devices { deviceId lastDeliveredSeq confirmedAt } summary } `

const explainBadge = `query ($channel: ID!, $user: ID) { explainBadge(channelId: $channel, userId: $user)` + explanationFields + `}`

func (c client) explain(channel string, user any) explanation {
	c.t.Helper()
	return ask[struct{ ExplainBadge explanation }](c, explainBadge, vars{"channel": channel, "user": user}).ExplainBadge
}

// adds checks that an explanation is that of a badge, and adds up to it.
func (e explanation) adds(t *testing.T, b badge) {
	t.Helper()
	expect(t, "the version", e.Version, b.Version)
	expect(t, "the count", e.Unread, b.Unread)
	expect(t, "the mentions", e.Mentions, b.Mentions)
	expect(t, "the bound", e.UnreadUpperBound, b.UnreadUpperBound)
	expect(t, "the sum", e.Unread.Count+e.DeletedInGap+e.OwnInGap, e.UnreadUpperBound)
	if !strings.Contains(e.Summary, "says "+b.Unread.Label+":") {
		t.Errorf("the badge is %s, and the sentence is %s", b.Unread.Label, e.Summary)
	}
}

func TestExplainBadge(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	ada, ben := s.as(1).on("phone"), s.as(2)
	ben.sends(channel, 4)
	ada.send(channel, "mine")
	ben.sends(channel, 3)
	ada.markUnread(channel, 2)
	ben.delete(channel, 3)
	ada.confirm(channel, vars{"seq": 6})

	mine := ada.explain(channel, nil)
	mine.adds(t, ada.badge(channel))
	expect(t, "its figures", fmt.Sprint(mine.HighWaterSeq, mine.LastReadSeq, mine.UnreadUpperBound, mine.Unread.Count, mine.DeletedInGap, mine.OwnInGap), "8 1 7 5 1 1")
	expect(t, "what moved it", mine.LastMovedBy, "MARK_UNREAD")
	expect(t, "the furthest ever read", mine.ReceiptSeq, 5)
	expect(t, "its devices", fmt.Sprintf("%d %s %d", len(mine.Devices), mine.Devices[0].DeviceID, mine.Devices[0].LastDeliveredSeq), "1 phone 6")

	ask[any](ada, `mutation ($channel: ID!) { markRead(channelId: $channel, upToSeq: 7, deviceId: "phone") { outcome } }`, vars{"channel": channel})
	mine = ada.explain(channel, "1")
	mine.adds(t, ada.badge(channel))
	expect(t, "the device that moved it", *mine.LastMovedByDeviceID, "phone")

	// The command says the same, line by line.
	code, out, _ := run(t, []string{"DATABASE_URL=" + s.database}, "explain", "--user", "1", "--channel", channel)
	expect(t, "the exit code", code, 0)
	for _, line := range []string{
		mine.Summary + "\n\n", "channelName +" + mine.ChannelName, "highWaterSeq +8\n", "lastReadSeq +7\n", "receiptSeq +7\n", "unread +1\n",
		"deletedInGap +0\n", "lastMovedBy +MARK_READ\n", `lastMovedByDeviceId +"phone"`, "lastMovedAt +" + mine.LastMovedAt + "\n",
		fmt.Sprintf("version +%d\n", mine.Version), `device "phone" +holds up to 6, confirmed at ` + mine.Devices[0].ConfirmedAt + "\n",
	} {
		if !regexp.MustCompile(strings.NewReplacer("(", `\(`, ")", `\)`).Replace(line)).MatchString(out) {
			t.Errorf("explain does not print %q:\n%s", line, out)
		}
	}
	code, _, stderr := run(t, []string{"DATABASE_URL=" + s.database}, "explain", "--user", "4", "--channel", channel)
	expect(t, "the exit code for somebody who is not in the channel", code, 1)
	expect(t, "what it says", stderr, "tidemark: person 4 is not in channel "+channel+"\n")
}

func TestTheStateOfOthersIsForSupport(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	s.as(2).sends(channel, 3)
	s.named(1, "Ada Lovelace").get("/me")
	s.named(5, "Adam").get("/me")
	questions := map[string]string{
		"explainBadge": `query ($channel: ID!) { explainBadge(channelId: $channel, userId: 1) { summary } }`,
		"people":       `{ people(search: "ad") { id displayName } }`,
		"inspection":   `{ inspection(userId: 1) { person { displayName } total { unread { label } } newlyUnread { label } badges` + explanationFields + ` } }`,
	}
	for field, question := range questions {
		for _, other := range []client{s.as(2), s.as(3), s.backend().on("")} {
			if field == "explainBadge" && other.token == s.backend().token {
				continue // that is a service of the same number, who asks about itself
			}
			other.refused("FORBIDDEN", question, vars{"channel": channel})
		}
	}
	s.as(1).refused("FORBIDDEN", `{ inspection(userId: 1) { person { id } } }`, nil)

	support := s.support(9)
	support.explain(channel, "1").adds(t, s.as(1).badge(channel))
	found := ask[struct {
		People []struct{ ID, DisplayName string }
	}](support, questions["people"], nil).People
	expect(t, "people", fmt.Sprint(found), "[{1 Ada Lovelace} {5 Adam}]")
	found = ask[struct {
		People []struct{ ID, DisplayName string }
	}](support, `{ people(search: "5") { id displayName } }`, nil).People
	expect(t, "people of a number", fmt.Sprint(found), "[{5 Adam}]")
	seen := ask[struct {
		Inspection struct{ Badges []explanation }
	}](support, questions["inspection"], nil).Inspection
	expect(t, "badges", len(seen.Badges), 1)
	seen.Badges[0].adds(t, s.as(1).badge(channel))
	support.refused("NOT_FOUND", explainBadge, vars{"channel": channel, "user": "3"})
	support.refused("NOT_FOUND", `{ inspection(userId: 77) { person { id } } }`, nil)
	support.refused("BAD_USER_INPUT", `{ people(search: " ") { id } }`, nil)
	support.refused("BAD_USER_INPUT", `{ people(search: "a", first: 501) { id } }`, nil)
	support.refused("BAD_USER_INPUT", `{ inspection(userId: 1, first: 0) { person { id } } }`, nil)

	for _, line := range []string{
		`"msg":"another person's state","what":"explain a badge","viewer":9,"allowed":true,"user":1,"channel":` + channel,
		`"msg":"another person's state","what":"inspect a person","viewer":2,"allowed":false,"user":1`,
	} {
		if !strings.Contains(s.stderr.String(), line) {
			t.Errorf("the log does not have %s:\n%s", line, s.stderr.String())
		}
	}
	before := strings.Count(s.stderr.String(), "another person's state")
	s.as(1).explain(channel, nil)
	expect(t, "lines about a look at oneself", strings.Count(s.stderr.String(), "another person's state")-before, 0)
}

func TestInspectionsInPages(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var channels []string
	for range 5 {
		channels = append(channels, s.group(1, 2))
	}
	type page struct {
		Inspection struct {
			Badges   []explanation
			PageInfo struct {
				HasNextPage bool
				EndCursor   *string
			}
		}
	}
	var listed []string
	for after, more := (*string)(nil), true; more; {
		p := ask[page](s.support(9), `query ($after: String) { inspection(userId: 1, first: 2, after: $after) { badges { channelId } pageInfo { hasNextPage endCursor } } }`, vars{"after": after}).Inspection
		for _, b := range p.Badges {
			listed = append(listed, b.ChannelID)
		}
		after, more = p.PageInfo.EndCursor, p.PageInfo.HasNextPage
	}
	expect(t, "channels", fmt.Sprint(listed), fmt.Sprint(channels))
}

func TestAnInspectionIsLive(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	const watch = `subscription { inspectionChanged(userId: 1) { userId channelIds } }`
	s.as(2).refused("FORBIDDEN", watch, nil)

	socket := s.support(9).dial()
	socket.subscribe("1", watch, nil)
	tells := func(what string, holds func(channels []string) bool) {
		t.Helper()
		within(t, 10*time.Second, what, func() bool {
			for _, f := range socket.of("1") {
				var told struct {
					Data struct{ InspectionChanged struct{ ChannelIDs []string } }
				}
				decode(t, string(f.Payload), &told)
				if holds(told.Data.InspectionChanged.ChannelIDs) {
					return true
				}
			}
			return false
		})
	}
	itsChannel := func(channels []string) bool { return slices.Equal(channels, []string{channel}) }
	tells("it begins with all channels", itsChannel)
	s.as(2).send(channel, "hello")
	tells("a message is told", itsChannel)
	s.settle()
	s.as(1).acknowledge("")
	tells("an acknowledge is told", func(channels []string) bool { return len(channels) == 0 })
}
