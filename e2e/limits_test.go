package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tidemark/internal/id"
)

func TestNullIsLeftOut(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	s.as(2).sends(channel, 5)
	for _, operation := range []string{
		`mutation {
			group: createChannel(input: {id: null, kind: GROUP, name: null, memberIds: [2]}) { id }
			direct: createChannel(input: {id: null, kind: DIRECT, name: null, memberIds: [2]}) { id }
			markRead(channelId: CHANNEL, upToSeq: 1, readEpoch: null, deviceId: null) { outcome }
			markManyRead(cursors: [{channelId: CHANNEL, upToSeq: 2, readEpoch: null}], deviceId: null) { outcome }
			markUnread(channelId: CHANNEL, fromSeq: 2, readEpoch: null) { outcome }
			sendMessage(channelId: CHANNEL, body: "hello", clientMessageId: null, mentions: null) { duplicate }
			confirmDelivery(deviceId: "phone", cursors: [{channelId: CHANNEL, seq: 1, version: null}]) { lastDeliveredSeq } }`,
		`{
			badges(after: null) { storeEpoch }
			syncChannel(channelId: CHANNEL, deviceId: "phone", after: null, sinceVersion: null, storeEpoch: null) { __typename }
			syncDevice(deviceId: "phone", held: null, after: null) { channels { action } }
			channel(id: CHANNEL) { members(after: null) { nodes { id } } messages(before: null) { id } } }`,
	} {
		ask[any](a, strings.ReplaceAll(operation, "CHANNEL", channel), nil)
	}
}

func TestArgumentsAtTheirLimits(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)

	astral := strings.Repeat("𝕋", 20000)
	expect(t, "the longest body", a.send(channel, astral).Message.Body, astral)
	escaped := json.RawMessage(`"` + strings.Repeat(`\ud835\udd4b`, 20000) + `"`)
	expect(t, "the same as JSON escapes it", a.sendAs(vars{"channel": channel, "body": escaped}).Message.Body, astral)
	expect(t, "an empty body", a.send(channel, "").Message.Body, "")
	head := a.send(channel, "hello").Message.Seq

	everyone := make([]id.User, 1000)
	for i := range everyone {
		everyone[i] = id.User(i) + 1
	}
	a.send(channel, "hello", everyone[:50]...)
	name := strings.Repeat("é", 200)
	large := a.create("GROUP", name, everyone...)
	a.add(channel, everyone...)
	expect(t, "the longest name", ask[struct{ Channel struct{ Name string } }](a, `query ($id: ID!) { channel(id: $id) { name } }`, vars{"id": large}).Channel.Name, name)

	device := strings.Repeat("é", 128)
	phone := a.on(device)
	held, read := make([]vars, 1000), make([]vars, 1000)
	for i := range held {
		held[i] = vars{"seq": head}
		read[i] = vars{"channelId": channel, "upToSeq": head}
	}
	phone.confirm(channel, held...)
	expect(t, "what the device holds", phone.order(channel, held...).LastDeliveredSeq, head)
	expect(t, "answers", len(a.markManyRead(read...)), 1000)
	phone.markRead(channel, head)
	if sent := a.sendAs(vars{"channel": channel, "body": "hello", "clientId": device}); *sent.Message.ClientMessageID != device {
		t.Errorf("the longest clientMessageId is %s", *sent.Message.ClientMessageID)
	}
	for _, size := range []string{"1", "500"} {
		ask[any](a, `query ($channel: ID!, $n: Int!) {
			badges(first: $n) { storeEpoch }
			syncDevice(deviceId: "phone", first: $n) { channels { action } }
			syncChannel(channelId: $channel, deviceId: "phone", limit: $n) { __typename }
			channel(id: $channel) { members(first: $n) { nodes { id } } messages(last: $n) { id } } }`,
			vars{"channel": channel, "n": json.RawMessage(size)})
	}
	for _, limit := range []string{"1", "10000"} {
		ask[any](a, `query ($cap: Int!) { badges(first: 1) {
			nodes { unread(cap: $cap) { count } mentions(cap: $cap) { count } } total { unread(cap: $cap) { count } mentions(cap: $cap) { count } } } }`,
			vars{"cap": json.RawMessage(limit)})
	}
}
