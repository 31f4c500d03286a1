package e2e_test

import (
	"fmt"
	"strings"

	"tidemark/internal/id"
)

// The API's types, as far as the tests look at them.
type (
	count struct {
		Count  int
		Capped bool
		Label  string
	}
	total struct {
		Unread         count
		UnreadChannels int
		Mentions       count
	}
	badge struct {
		ID               string
		Version          int64
		Channel          struct{ ID string }
		HighWaterSeq     int64
		LastReadSeq      int64
		ReadEpoch        int
		UnreadUpperBound int
		Unread           count
		Mentions         count
		Muted            bool
	}
	badgePage struct {
		Nodes      []badge
		Total      total
		StoreEpoch string
		PageInfo   pageInfo
	}
	pageInfo struct {
		HasNextPage     bool
		HasPreviousPage bool
		EndCursor       *string
	}
	message struct {
		ID     string
		Seq    int64
		Sender struct {
			ID          string
			DisplayName string
		}
		Body            string
		Deleted         bool
		MentionsViewer  bool
		ClientMessageID *string
	}
	sent struct {
		Message   message
		Badge     badge
		Duplicate bool
	}
	marked struct {
		ChannelID string
		Outcome   string
		Badge     *badge
	}
	channelSync struct {
		Type        string `json:"__typename"`
		Reason      string
		Messages    []message
		DeletedSeqs []int64
		FromSeq     int64
		ToSeq       int64
		HasMore     bool
		Version     int64
		StoreEpoch  string
		Badge       badge
	}
	deviceChannel struct {
		ChannelID        string
		LastDeliveredSeq int64
		HighWaterSeq     int64
		Action           string
	}
)

const (
	countFields = ` { count capped label }`
	totalFields = ` { unread` + countFields + ` unreadChannels mentions` + countFields + ` }`
	badgeFields = ` { id version channel { id } highWaterSeq lastReadSeq readEpoch unreadUpperBound
		unread` + countFields + ` mentions` + countFields + ` muted }`
	pageFields    = ` { nodes` + badgeFields + ` total` + totalFields + ` storeEpoch pageInfo { hasNextPage hasPreviousPage endCursor } }`
	messageFields = ` { id seq sender { id displayName } body deleted mentionsViewer clientMessageId }`
	sentFields    = ` { message` + messageFields + ` badge` + badgeFields + ` duplicate }`
	markedFields  = ` { channelId outcome badge` + badgeFields + ` }`
	syncFields    = ` { __typename
		... on ChannelDiff { messages` + messageFields + ` deletedSeqs fromSeq toSeq hasMore version storeEpoch badge` + badgeFields + ` }
		... on ChannelResync { reason messages` + messageFields + ` toSeq version storeEpoch badge` + badgeFields + ` } }`
)

// group makes a channel of these people, whom a service names.
func (s *server) group(members ...id.User) (channel string) {
	s.t.Helper()
	return s.backend().create("GROUP", "", members...)
}

// create makes a channel. An empty name is none.
func (c client) create(kind, name string, members ...id.User) (channel string) {
	c.t.Helper()
	input := vars{"kind": kind, "memberIds": members}
	if name != "" {
		input["name"] = name
	}
	return ask[struct{ CreateChannel struct{ ID string } }](c, `mutation ($input: CreateChannelInput!) {
		createChannel(input: $input) { id } }`, vars{"input": input}).CreateChannel.ID
}

func (c client) add(channel string, users ...id.User) {
	c.t.Helper()
	ask[any](c, `mutation ($channel: ID!, $users: [ID!]!) { addMembers(channelId: $channel, userIds: $users) { id } }`,
		vars{"channel": channel, "users": users})
}

func (c client) remove(channel string, user id.User) {
	c.t.Helper()
	ask[any](c, `mutation ($channel: ID!, $user: ID!) { removeMember(channelId: $channel, userId: $user) { id } }`,
		vars{"channel": channel, "user": user})
}

const sendMessage = `mutation ($channel: ID!, $body: String!, $clientId: ID, $mentions: [ID!], $everyone: Boolean! = false) {
	sendMessage(channelId: $channel, body: $body, clientMessageId: $clientId, mentions: $mentions, mentionsEveryone: $everyone)` + sentFields + ` }`

// send sends a message that names people.
func (c client) send(channel, body string, mentions ...id.User) sent {
	c.t.Helper()
	return c.sendAs(vars{"channel": channel, "body": body, "mentions": mentions})
}

// sends sends a number of messages and returns the last one's seq, 0 where there is none.
func (c client) sends(channel string, messages int) int64 {
	c.t.Helper()
	if messages == 0 {
		return 0
	}
	all := batch[sent](c, messages, func(int) string {
		return `sendMessage(channelId: ` + channel + `, body: "hello") { message { seq } }`
	})
	return all[len(all)-1].Message.Seq
}

// deletes deletes a number of messages from the first on.
func (c client) deletes(channel string, messages int) {
	c.t.Helper()
	batch[message](c, messages, func(i int) string {
		return fmt.Sprintf(`deleteMessage(channelId: %s, seq: %d) { id }`, channel, i+1)
	})
}

// batch makes a number of mutations in order, as many in one call as may be.
func batch[T any](c client, mutations int, field func(i int) string) []T {
	c.t.Helper()
	const perCall = 20
	answers := make([]T, mutations)
	for from := 0; from < mutations; from += perCall {
		var fields strings.Builder
		for i := from; i < min(from+perCall, mutations); i++ {
			fmt.Fprintf(&fields, "m%d: %s\n", i, field(i))
		}
		for name, answer := range ask[map[string]T](c, "mutation { "+fields.String()+" }", nil) {
			var i int
			if _, err := fmt.Sscanf(name, "m%d", &i); err != nil {
				c.t.Error(err)
			}
			answers[i] = answer
		}
	}
	return answers
}

// sendAs sends a message by the variables of sendMessage.
func (c client) sendAs(variables vars) sent {
	c.t.Helper()
	return ask[struct{ SendMessage sent }](c, sendMessage, variables).SendMessage
}

func (c client) delete(channel string, seq int64) {
	c.t.Helper()
	ask[any](c, `mutation ($channel: ID!, $seq: Seq!) { deleteMessage(channelId: $channel, seq: $seq) { id } }`,
		vars{"channel": channel, "seq": seq})
}

const markRead = `mutation ($channel: ID!, $seq: Seq!, $epoch: Int, $device: ID) {
	markRead(channelId: $channel, upToSeq: $seq, readEpoch: $epoch, deviceId: $device)` + markedFields + ` }`

// markRead marks read, in an epoch where one is given.
func (c client) markRead(channel string, upTo int64, epoch ...int) marked {
	c.t.Helper()
	return c.mark(markRead, vars{"channel": channel, "seq": upTo}, epoch)
}

const markUnread = `mutation ($channel: ID!, $seq: Seq!, $epoch: Int) {
	markUnread(channelId: $channel, fromSeq: $seq, readEpoch: $epoch)` + markedFields + ` }`

// markUnread marks unread, in an epoch where one is given.
func (c client) markUnread(channel string, from int64, epoch ...int) marked {
	c.t.Helper()
	return c.mark(markUnread, vars{"channel": channel, "seq": from}, epoch)
}

func (c client) mark(mutation string, variables vars, epoch []int) marked {
	c.t.Helper()
	if len(epoch) > 0 {
		variables["epoch"] = epoch[0]
	}
	if c.device != "" {
		variables["device"] = c.device
	}
	for _, m := range ask[map[string]marked](c, mutation, variables) {
		if m.Badge == nil {
			c.t.Errorf("%s %v: no badge", mutation, variables)
			m.Badge = new(badge)
		}
		return m
	}
	return marked{Badge: new(badge)}
}

func (c client) markManyRead(cursors ...vars) []marked {
	c.t.Helper()
	answers := ask[struct{ MarkManyRead []marked }](c, `mutation ($cursors: [ReadCursor!]!) {
		markManyRead(cursors: $cursors)`+markedFields+` }`, vars{"cursors": cursors}).MarkManyRead
	if len(answers) != len(cursors) {
		c.t.Errorf("%d cursors are answered with %+v", len(cursors), answers)
		return make([]marked, len(cursors))
	}
	return answers
}

func (c client) mute(channel string, muted bool) badge {
	c.t.Helper()
	return ask[struct{ SetMuted badge }](c, `mutation ($channel: ID!, $muted: Boolean!) {
		setMuted(channelId: $channel, muted: $muted)`+badgeFields+` }`,
		vars{"channel": channel, "muted": muted}).SetMuted
}

// messages returns the newest messages of a channel, oldest first.
func (c client) messages(channel string, last int) []message {
	c.t.Helper()
	return ask[struct{ Channel struct{ Messages []message } }](c, `query ($channel: ID!, $last: Int!) {
		channel(id: $channel) { messages(last: $last)`+messageFields+` } }`,
		vars{"channel": channel, "last": last}).Channel.Messages
}

// sync asks what the device lacks of a channel, given what it says it holds.
func (c client) sync(channel string, held vars) channelSync {
	c.t.Helper()
	variables := vars{"channel": channel, "device": c.device}
	for name, value := range held {
		variables[name] = value
	}
	return ask[struct{ SyncChannel channelSync }](c, `query ($channel: ID!, $device: ID!, $after: Seq, $since: Seq, $epoch: ID, $limit: Int! = 200) {
		syncChannel(channelId: $channel, deviceId: $device, after: $after, sinceVersion: $since, storeEpoch: $epoch, limit: $limit)`+syncFields+` }`,
		variables).SyncChannel
}

// cursor is what the device confirms after a sync.
func (s channelSync) cursor() vars { return vars{"seq": s.ToSeq, "version": s.Version} }

// holds is what the device says at its next sync.
func (s channelSync) holds() vars {
	return vars{"after": s.ToSeq, "since": s.Version, "epoch": s.StoreEpoch}
}

// syncDevice asks what the device should do about each channel, given what it says it holds of them, and in which
// store epoch.
func (c client) syncDevice(epoch *string, held ...vars) []deviceChannel {
	c.t.Helper()
	return ask[struct {
		SyncDevice struct{ Channels []deviceChannel }
	}](c, `query ($device: ID!, $held: [DeliveryCursor!], $epoch: ID) {
		syncDevice(deviceId: $device, held: $held, storeEpoch: $epoch) {
			storeEpoch channels { channelId lastDeliveredSeq highWaterSeq action } } }`,
		vars{"device": c.device, "held": held, "epoch": epoch}).SyncDevice.Channels
}

// order is what the device should do about a channel, given what it says it holds of it.
func (c client) order(channel string, held ...vars) deviceChannel {
	c.t.Helper()
	return c.orderOf(c.syncDevice(nil, of(channel, held)...), channel)
}

// orderIn is order for a device that says in which store epoch it got what it holds.
func (c client) orderIn(epoch, channel string, held vars) deviceChannel {
	c.t.Helper()
	return c.orderOf(c.syncDevice(&epoch, of(channel, []vars{held})...), channel)
}

func (c client) orderOf(orders []deviceChannel, channel string) deviceChannel {
	c.t.Helper()
	for _, order := range orders {
		if order.ChannelID == channel {
			return order
		}
	}
	c.t.Errorf("there is no order for channel %s", channel)
	return deviceChannel{}
}

// confirm records what the device holds of a channel.
func (c client) confirm(channel string, held ...vars) {
	c.t.Helper()
	ask[any](c, `mutation ($device: ID!, $cursors: [DeliveryCursor!]!) {
		confirmDelivery(deviceId: $device, cursors: $cursors) { channelId } }`,
		vars{"device": c.device, "cursors": of(channel, held)})
}

// of returns delivery cursors of one channel.
func of(channel string, held []vars) []vars {
	for i := range held {
		held[i]["channelId"] = channel
	}
	return held
}

// page returns a page of badges. The arguments are GraphQL.
func (c client) page(arguments string) badgePage {
	c.t.Helper()
	return ask[struct{ Badges badgePage }](c, `{ badges(`+arguments+`)`+pageFields+` }`, nil).Badges
}
