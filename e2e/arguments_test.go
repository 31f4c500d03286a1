package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// beyondNumbers is one that GraphQL itself refuses where it stands in a query.
const beyondNumbers = "9223372036854775808"

// Values that arguments must not have, as JSON, which is also how GraphQL writes them.
func wrongIDs() []string {
	return []string{`"0"`, `"-1"`, `"01"`, `"1.5"`, `"x"`, `""`, `" 1"`, `"9223372036854775808"`, `0`, `-1`, beyondNumbers}
}

func wrongSeqs() []string {
	return []string{`-1`, `1.5`, `"7"`, `9007199254740992`, beyondNumbers, `true`}
}

func wrongSizes(most int) []string {
	return []string{`0`, `-1`, strconv.Itoa(most + 1), `2147483648`, `-9223372036854775808`}
}

func wrongCursors() []string {
	return []string{`""`, `"garbage"`, `"MTIz="`, `"LTE"`, `"\u0000"`}
}

// longerThan is a text with one character too many, and one that no text may have.
func longerThan(characters int) []string {
	return []string{`"` + strings.Repeat("é", characters+1) + `"`, `"\u0000"`}
}

// moreThan is a list with one entry too many.
func moreThan(entries int, entry string) []string {
	return []string{"[" + strings.Repeat(entry+",", entries) + entry + "]"}
}

// argument is one of a call, which has a %s for its value.
type argument struct {
	of    string // as the schema knows it
	name  string // as the error must begin
	kind  string
	wrong []string
	call  string
}

// arguments returns all arguments of the API that can be wrong. Channel 7 has messages.
func arguments() []argument {
	return []argument{
		{
			"Mutation.markRead.channelId", "channelId", "ID!", wrongIDs(),
			`mutation { markRead(channelId: %s, upToSeq: 1) { outcome } }`,
		},
		{
			"Mutation.markRead.upToSeq", "upToSeq", "Seq!", wrongSeqs(),
			`mutation { markRead(channelId: 7, upToSeq: %s) { outcome } }`,
		},
		{
			"Mutation.markRead.deviceId", "deviceId", "ID", longerThan(128),
			`mutation { markRead(channelId: 7, upToSeq: 3, deviceId: %s) { outcome } }`,
		},
		{
			"Mutation.markManyRead.cursors", "cursors", "[ReadCursor!]!", moreThan(1000, `{"channelId": 7, "upToSeq": 1}`),
			`mutation { markManyRead(cursors: %s) { outcome } }`,
		},
		{
			"Mutation.markManyRead.deviceId", "deviceId", "ID", longerThan(128),
			`mutation { markManyRead(cursors: [{channelId: 7, upToSeq: 3}], deviceId: %s) { outcome } }`,
		},
		{
			"ReadCursor.channelId", "cursors[1].channelId", "ID!", wrongIDs(),
			`mutation { markManyRead(cursors: [{channelId: 7, upToSeq: 3}, {channelId: %s, upToSeq: 1}]) { outcome } }`,
		},
		{
			"ReadCursor.upToSeq", "cursors[1].upToSeq", "Seq!", wrongSeqs(),
			`mutation { markManyRead(cursors: [{channelId: 7, upToSeq: 3}, {channelId: 7, upToSeq: %s}]) { outcome } }`,
		},
		{
			"Mutation.markUnread.channelId", "channelId", "ID!", wrongIDs(),
			`mutation { markUnread(channelId: %s, fromSeq: 1) { outcome } }`,
		},
		{
			"Mutation.markUnread.fromSeq", "fromSeq", "Seq!", wrongSeqs(),
			`mutation { markUnread(channelId: 7, fromSeq: %s) { outcome } }`,
		},
		{
			"Mutation.setMuted.channelId", "channelId", "ID!", wrongIDs(),
			`mutation { setMuted(channelId: %s, muted: true) { id } }`,
		},
		{
			"Mutation.confirmDelivery.deviceId", "deviceId", "ID!", append(longerThan(128), `""`),
			`mutation { confirmDelivery(deviceId: %s, cursors: [{channelId: 7, seq: 1}]) { channelId } }`,
		},
		{
			"Mutation.confirmDelivery.cursors", "cursors", "[DeliveryCursor!]!", moreThan(1000, `{"channelId": 7, "seq": 1}`),
			`mutation { confirmDelivery(deviceId: "phone", cursors: %s) { channelId } }`,
		},
		{
			"DeliveryCursor.channelId", "cursors[1].channelId", "ID!", wrongIDs(),
			`mutation { confirmDelivery(deviceId: "phone", cursors: [{channelId: 7, seq: 1}, {channelId: %s, seq: 1}]) { channelId } }`,
		},
		{
			"DeliveryCursor.seq", "cursors[1].seq", "Seq!", wrongSeqs(),
			`mutation { confirmDelivery(deviceId: "phone", cursors: [{channelId: 7, seq: 1}, {channelId: 7, seq: %s}]) { channelId } }`,
		},
		{
			"DeliveryCursor.version", "cursors[1].version", "Seq", wrongSeqs(),
			`mutation { confirmDelivery(deviceId: "phone", cursors: [{channelId: 7, seq: 1}, {channelId: 7, seq: 1, version: %s}]) { channelId } }`,
		},
		{
			"Query.newlyUnread.first", "first", "Int!", wrongSizes(500),
			`{ newlyUnread(first: %s) { count } }`,
		},
		{
			"Mutation.acknowledge.asOf", "asOf", "Position", append(wrongCursors(), `7`, `"-1"`),
			`mutation { acknowledge(asOf: %s) { count } }`,
		},
		{
			"Query.explainBadge.channelId", "channelId", "ID!", wrongIDs(),
			`{ explainBadge(channelId: %s) { summary } }`,
		},
		{
			"Query.explainBadge.userId", "userId", "ID", wrongIDs(),
			`{ explainBadge(channelId: 7, userId: %s) { summary } }`,
		},
		{
			"Query.people.search", "search", "String!", append(longerThan(200), `""`, `" "`),
			`{ people(search: %s) { id } }`,
		},
		{
			"Query.people.first", "first", "Int!", wrongSizes(500),
			`{ people(search: "a", first: %s) { id } }`,
		},
		{
			"Query.inspection.userId", "userId", "ID!", wrongIDs(),
			`{ inspection(userId: %s) { person { id } } }`,
		},
		{
			"Query.inspection.first", "first", "Int!", wrongSizes(500),
			`{ inspection(userId: 1, first: %s) { person { id } } }`,
		},
		{
			"Query.inspection.after", "after", "String", wrongCursors(),
			`{ inspection(userId: 1, after: %s) { person { id } } }`,
		},
		{
			"BadgeExplanation.unread.cap", "cap", "Int!", wrongSizes(10000),
			`{ explainBadge(channelId: 7) { unread(cap: %s) { count } } }`,
		},
		{
			"BadgeExplanation.mentions.cap", "cap", "Int!", wrongSizes(10000),
			`{ inspection(userId: 1) { badges { mentions(cap: %s) { count } } } }`,
		},
		{
			"Subscription.inspectionChanged.userId", "userId", "ID!", wrongIDs(),
			`subscription { inspectionChanged(userId: %s) { userId } }`,
		},
		{
			"Subscription.badgeChanged.channelIds", "channelIds", "[ID!]", moreThan(1000, `"7"`),
			`subscription { badgeChanged(channelIds: %s) { snapshot } }`,
		},
		{
			"Subscription.badgeChanged.channelIds", "channelIds[1]", "ID!", wrongIDs(),
			`subscription { badgeChanged(channelIds: ["7", %s]) { snapshot } }`,
		},
		{
			"Subscription.channelEvents.channelId", "channelId", "ID!", wrongIDs(),
			`subscription { channelEvents(channelId: %s) { __typename } }`,
		},
		{
			"Subscription.channelEvents.after", "after", "Seq", wrongSeqs(),
			`subscription { channelEvents(channelId: 7, after: %s) { __typename } }`,
		},
		{
			"Subscription.channelEvents.sinceVersion", "sinceVersion", "Seq", wrongSeqs(),
			`subscription { channelEvents(channelId: 7, sinceVersion: %s) { __typename } }`,
		},
		{
			"Query.readReceipt.channelId", "channelId", "ID!", wrongIDs(),
			`{ readReceipt(channelId: %s, seq: 1) { readCount } }`,
		},
		{
			"Query.readReceipt.seq", "seq", "Seq!", wrongSeqs(),
			`{ readReceipt(channelId: 7, seq: %s) { readCount } }`,
		},
		{
			"Subscription.receiptChanged.channelId", "channelId", "ID!", wrongIDs(),
			`subscription { receiptChanged(channelId: %s, seq: 1) { readCount } }`,
		},
		{
			"Subscription.receiptChanged.seq", "seq", "Seq!", wrongSeqs(),
			`subscription { receiptChanged(channelId: 7, seq: %s) { readCount } }`,
		},
		{
			"ReadReceipt.readers.first", "first", "Int!", wrongSizes(500),
			`{ readReceipt(channelId: 7, seq: 1) { readers(first: %s) { nodes { id } } } }`,
		},
		{
			"ReadReceipt.readers.after", "after", "String", wrongCursors(),
			`{ readReceipt(channelId: 7, seq: 1) { readers(after: %s) { nodes { id } } } }`,
		},
		{
			"ReadReceipt.unreadMembers.first", "first", "Int!", wrongSizes(500),
			`{ readReceipt(channelId: 7, seq: 1) { unreadMembers(first: %s) { nodes { id } } } }`,
		},
		{
			"ReadReceipt.unreadMembers.after", "after", "String", wrongCursors(),
			`{ readReceipt(channelId: 7, seq: 1) { unreadMembers(after: %s) { nodes { id } } } }`,
		},
		{
			"Mutation.forgetDevice.deviceId", "deviceId", "ID!", append(longerThan(128), `""`),
			`mutation { forgetDevice(deviceId: %s) }`,
		},
		{
			"Mutation.sendMessage.channelId", "channelId", "ID!", wrongIDs(),
			`mutation { sendMessage(channelId: %s, body: "hello") { duplicate } }`,
		},
		{
			"Mutation.sendMessage.body", "body", "String!", longerThan(20000),
			`mutation { sendMessage(channelId: 7, body: %s) { duplicate } }`,
		},
		{
			"Mutation.sendMessage.clientMessageId", "clientMessageId", "ID", longerThan(128),
			`mutation { sendMessage(channelId: 7, body: "hello", clientMessageId: %s) { duplicate } }`,
		},
		{
			"Mutation.sendMessage.mentions", "mentions", "[ID!]", moreThan(50, "2"),
			`mutation { sendMessage(channelId: 7, body: "hello", mentions: %s) { duplicate } }`,
		},
		{
			"Mutation.sendMessage.mentions", "mentions[1]", "ID!", wrongIDs(),
			`mutation { sendMessage(channelId: 7, body: "hello", mentions: [2, %s]) { duplicate } }`,
		},
		{
			"Mutation.deleteMessage.channelId", "channelId", "ID!", wrongIDs(),
			`mutation { deleteMessage(channelId: %s, seq: 1) { id } }`,
		},
		{
			"Mutation.deleteMessage.seq", "seq", "Seq!", wrongSeqs(),
			`mutation { deleteMessage(channelId: 7, seq: %s) { id } }`,
		},
		{
			"CreateChannelInput.id", "input.id", "ID", wrongIDs(),
			`mutation { createChannel(input: {id: %s, kind: GROUP, memberIds: [2]}) { id } }`,
		},
		{
			"CreateChannelInput.name", "input.name", "String", longerThan(200),
			`mutation { createChannel(input: {kind: GROUP, name: %s, memberIds: [2]}) { id } }`,
		},
		{
			"CreateChannelInput.name", "input.name", "String",
			[]string{`"ours"`},
			`mutation { createChannel(input: {kind: DIRECT, name: %s, memberIds: [9]}) { id } }`,
		},
		{
			"CreateChannelInput.memberIds", "input.memberIds", "[ID!]!", moreThan(1000, "2"),
			`mutation { createChannel(input: {kind: GROUP, memberIds: %s}) { id } }`,
		},
		{
			"CreateChannelInput.memberIds", "input.memberIds", "[ID!]!",
			[]string{`[]`, `[1]`, `[8, 9]`},
			`mutation { createChannel(input: {kind: DIRECT, memberIds: %s}) { id } }`,
		},
		{
			"CreateChannelInput.memberIds", "input.memberIds[1]", "ID!", wrongIDs(),
			`mutation { createChannel(input: {kind: GROUP, memberIds: [2, %s]}) { id } }`,
		},
		{
			"Mutation.addMembers.channelId", "channelId", "ID!", wrongIDs(),
			`mutation { addMembers(channelId: %s, userIds: [9]) { id } }`,
		},
		{
			"Mutation.addMembers.userIds", "userIds", "[ID!]!", moreThan(1000, "9"),
			`mutation { addMembers(channelId: 7, userIds: %s) { id } }`,
		},
		{
			"Mutation.addMembers.userIds", "userIds[1]", "ID!", wrongIDs(),
			`mutation { addMembers(channelId: 7, userIds: [9, %s]) { id } }`,
		},
		{
			"Mutation.removeMember.channelId", "channelId", "ID!", wrongIDs(),
			`mutation { removeMember(channelId: %s, userId: 1) { id } }`,
		},
		{
			"Mutation.removeMember.userId", "userId", "ID!", wrongIDs(),
			`mutation { removeMember(channelId: 7, userId: %s) { id } }`,
		},

		{
			"Query.badges.first", "first", "Int!", wrongSizes(500),
			`{ badges(first: %s) { storeEpoch } }`,
		},
		{
			"Query.badges.after", "after", "String", wrongCursors(),
			`{ badges(after: %s) { storeEpoch } }`,
		},
		{
			"Query.syncChannel.channelId", "channelId", "ID!", wrongIDs(),
			`{ syncChannel(channelId: %s, deviceId: "phone") { __typename } }`,
		},
		{
			"Query.syncChannel.deviceId", "deviceId", "ID!", append(longerThan(128), `""`),
			`{ syncChannel(channelId: 7, deviceId: %s) { __typename } }`,
		},
		{
			"Query.syncChannel.after", "after", "Seq", wrongSeqs(),
			`{ syncChannel(channelId: 7, deviceId: "phone", after: %s) { __typename } }`,
		},
		{
			"Query.syncChannel.sinceVersion", "sinceVersion", "Seq", wrongSeqs(),
			`{ syncChannel(channelId: 7, deviceId: "phone", sinceVersion: %s) { __typename } }`,
		},
		{
			"Query.syncChannel.limit", "limit", "Int!", wrongSizes(500),
			`{ syncChannel(channelId: 7, deviceId: "phone", limit: %s) { __typename } }`,
		},
		{
			"Query.syncDevice.deviceId", "deviceId", "ID!", append(longerThan(128), `""`),
			`{ syncDevice(deviceId: %s) { channels { action } } }`,
		},
		{
			"Query.syncDevice.held", "held", "[DeliveryCursor!]", moreThan(1000, `{"channelId": 7, "seq": 1}`),
			`{ syncDevice(deviceId: "phone", held: %s) { channels { action } } }`,
		},
		{
			"DeliveryCursor.channelId", "held[0].channelId", "ID!", wrongIDs(),
			`{ syncDevice(deviceId: "phone", held: [{channelId: %s, seq: 1}]) { channels { action } } }`,
		},
		{
			"DeliveryCursor.seq", "held[0].seq", "Seq!", wrongSeqs(),
			`{ syncDevice(deviceId: "phone", held: [{channelId: 7, seq: %s}]) { channels { action } } }`,
		},
		{
			"DeliveryCursor.version", "held[0].version", "Seq", wrongSeqs(),
			`{ syncDevice(deviceId: "phone", held: [{channelId: 7, seq: 1, version: %s}]) { channels { action } } }`,
		},
		{
			"Query.syncDevice.first", "first", "Int!", wrongSizes(500),
			`{ syncDevice(deviceId: "phone", first: %s) { channels { action } } }`,
		},
		{
			"Query.syncDevice.after", "after", "String", wrongCursors(),
			`{ syncDevice(deviceId: "phone", after: %s) { channels { action } } }`,
		},
		{
			"Query.channel.id", "id", "ID!", wrongIDs(),
			`{ channel(id: %s) { id } }`,
		},
		{
			"Channel.members.first", "first", "Int!", wrongSizes(500),
			`{ channel(id: 7) { members(first: %s) { nodes { id } } } }`,
		},
		{
			"Channel.members.after", "after", "String", wrongCursors(),
			`{ channel(id: 7) { members(after: %s) { nodes { id } } } }`,
		},
		{
			"Channel.messages.before", "before", "Seq", wrongSeqs(),
			`{ channel(id: 7) { messages(before: %s) { id } } }`,
		},
		{
			"Channel.messages.last", "last", "Int!", wrongSizes(500),
			`{ channel(id: 7) { messages(last: %s) { id } } }`,
		},

		{
			"Badge.unread.cap", "cap", "Int!", wrongSizes(10000),
			`{ badges { nodes { unread(cap: %s) { count } } } }`,
		},
		{
			"Badge.mentions.cap", "cap", "Int!", wrongSizes(10000),
			`{ badges { edges { node { mentions(cap: %s) { count } } } } }`,
		},
		{
			"BadgeTotal.unread.cap", "cap", "Int!", wrongSizes(10000),
			`{ badges { total { unread(cap: %s) { count } } } }`,
		},
		{
			"BadgeTotal.mentions.cap", "cap", "Int!", wrongSizes(10000),
			`{ me { badgeTotal { mentions(cap: %s) { count } } } }`,
		},
		{
			"Badge.unread.cap", "cap", "Int!", wrongSizes(10000),
			`{ syncChannel(channelId: 7, deviceId: "phone") { ... on ChannelResync { badge { unread(cap: %s) { count } } } } }`,
		},
		{
			"Badge.unread.cap", "cap", "Int!", wrongSizes(10000),
			`mutation { markRead(channelId: 7, upToSeq: 3) { badge { unread(cap: %s) { count } } } }`,
		},
		{
			"Badge.mentions.cap", "cap", "Int!", wrongSizes(10000),
			`mutation { markManyRead(cursors: [{channelId: 7, upToSeq: 4}]) { badge { mentions(cap: %s) { count } } } }`,
		},
		{
			"Badge.unread.cap", "cap", "Int!", wrongSizes(10000),
			`mutation { markUnread(channelId: 7, fromSeq: 1) { badge { unread(cap: %s) { count } } } }`,
		},
		{
			"Badge.mentions.cap", "cap", "Int!", wrongSizes(10000),
			`mutation { setMuted(channelId: 7, muted: true) { mentions(cap: %s) { count } } }`,
		},
		{
			"Badge.unread.cap", "cap", "Int!", wrongSizes(10000),
			`mutation { sendMessage(channelId: 7, body: "hello") { badge { unread(cap: %s) { count } } } }`,
		},
	}
}

func TestWrongArgumentsAreNamedAndChangeNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.as(1)
	ask[any](a, `mutation { createChannel(input: {id: 7, kind: GROUP, memberIds: [2]}) { id } }`, nil)
	a.sends("7", 1)
	s.as(2).sends("7", 5)
	for _, argument := range arguments() {
		before := contents(t, s.database)
		declared := strings.Replace(argument.call, "{", "($v: "+argument.kind+") {", 1)
		if strings.HasPrefix(declared, "(") {
			declared = "query " + declared
		}
		for _, value := range argument.wrong {
			replies := []reply{a.do(fmt.Sprintf(declared, "$v"), vars{"v": json.RawMessage(value)})}
			switch {
			case value == beyondNumbers:
				a.refused("GRAPHQL_VALIDATION_FAILED", fmt.Sprintf(argument.call, value), nil)
			case len(value) < 1000: // a longer one is no part of a query
				replies = append(replies, a.do(fmt.Sprintf(argument.call, value), nil))
			}
			for _, r := range replies {
				if r.code() != "BAD_USER_INPUT" || !strings.HasPrefix(r.message(), argument.name+" ") {
					t.Errorf("%s with %.50s: %.300s", argument.call, value, r.body)
				}
			}
		}
		if after := contents(t, s.database); after != before {
			t.Errorf("%s is refused and changes something", argument.call)
		}
	}
}

// TestEveryArgumentIsInTheTable keeps the table up with the schema.
func TestEveryArgumentIsInTheTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../schema.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	inTable := map[string]bool{
		"Query.syncChannel.storeEpoch":          true, // one that was never given out is another store's
		"Query.syncDevice.storeEpoch":           true,
		"Subscription.channelEvents.storeEpoch": true,
		"Mutation.confirmDelivery.storeEpoch":   true, // CONFLICT, see L11
		"Mutation.markRead.readEpoch":           true, // every number is one, see R14
		"Mutation.markUnread.readEpoch":         true,
		"ReadCursor.readEpoch":                  true,
	}
	for _, argument := range arguments() {
		inTable[argument.of] = true
	}
	check := func(name string, kind *ast.Type) {
		// An enum and a Boolean can only be what they are, and an object is in the table with its fields.
		isText := schema.Types[kind.Name()].Kind == ast.Scalar && kind.Name() != "Boolean"
		if (isText || kind.Elem != nil) && !inTable[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
	for _, definition := range schema.Types {
		for _, field := range definition.Fields {
			if definition.Kind == ast.InputObject {
				check(definition.Name+"."+field.Name, field.Type)
			}
			for _, argument := range field.Arguments {
				if !strings.HasPrefix(definition.Name, "__") && !strings.HasPrefix(field.Name, "__") {
					check(definition.Name+"."+field.Name+"."+argument.Name, argument.Type)
				}
			}
		}
	}
}
