package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/person"
)

func TestStrangersAreToldNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	member, stranger := s.as(2), s.as(1)
	existing := s.group(2, 3)
	member.sends(existing, 9)
	stranger.get("/me") // makes the stranger known
	before := contents(t, s.database)
	for field, query := range map[string]string{
		"markRead":         `mutation { markRead(channelId: %[1]s, upToSeq: 1) { outcome } }`,
		"markManyRead":     `mutation { markManyRead(cursors: [{channelId: %[1]s, upToSeq: 1}]) { outcome badge { id } } }`,
		"markUnread":       `mutation { markUnread(channelId: %[1]s, fromSeq: 1) { outcome } }`,
		"setMuted":         `mutation { setMuted(channelId: %[1]s, muted: true) { id } }`,
		"confirmDelivery":  `mutation { confirmDelivery(deviceId: "phone", cursors: [{channelId: %[1]s, seq: 1}]) { channelId } }`,
		"sendMessage":      `mutation { sendMessage(channelId: %[1]s, body: "hello", clientMessageId: "x") { duplicate } }`,
		"deleteMessage":    `mutation { deleteMessage(channelId: %[1]s, seq: 1) { id } }`,
		"addMembers":       `mutation { addMembers(channelId: %[1]s, userIds: [1]) { id } }`,
		"removeMember":     `mutation { removeMember(channelId: %[1]s, userId: 2) { id } }`,
		"removing oneself": `mutation { removeMember(channelId: %[1]s, userId: 1) { id } }`,
		"syncChannel":      `{ syncChannel(channelId: %[1]s, deviceId: "phone") { __typename } }`,
		"syncDevice":       `{ syncDevice(deviceId: "phone", held: [{channelId: %[1]s, seq: 1}]) { channels { channelId } } }`,
		"readReceipt":      `{ readReceipt(channelId: %[1]s, seq: 1) { readCount readers { nodes { id } } } }`,
		"receiptChanged":   `subscription { receiptChanged(channelId: %[1]s, seq: 1) { readCount } }`,
		"channel":          `{ channel(id: %[1]s) { id members { nodes { id } } messages { body } } }`,
	} {
		here, nowhere := stranger.do(fmt.Sprintf(query, existing), nil), stranger.do(fmt.Sprintf(query, "9999999999999"), nil)
		if here.body != nowhere.body || here.status != nowhere.status {
			t.Errorf("%s: a channel of others is answered with\n%s, one that does not exist with\n%s", field, here.body, nowhere.body)
		}
		switch field {
		case "syncDevice", "channel", "markManyRead":
			expect(t, field, here.code(), "")
		default:
			expect(t, field, here.code(), "NOT_FOUND")
		}
	}
	unchanged(t, s.database, before)
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	s := serve(t)
	creator, member, backend := s.as(1), s.as(2), s.backend()
	support := s.bearing(sign(t, person.Viewer{ID: 3, Role: person.RoleSupport}))
	channel := creator.create("GROUP", "ours", 2, 3)
	creator.sends(channel, 3)
	before := contents(t, s.database)
	const (
		deleteMessage = `mutation ($channel: ID!, $seq: Seq!) { deleteMessage(channelId: $channel, seq: $seq) { deleted } }`
		removeMember  = `mutation ($channel: ID!, $user: ID!) { removeMember(channelId: $channel, userId: $user) { memberCount } }`
		addMembers    = `mutation ($channel: ID!, $users: [ID!]!) { addMembers(channelId: $channel, userIds: $users) { memberCount } }`
	)
	for _, other := range []client{member, support} {
		other.refused("FORBIDDEN", deleteMessage, vars{"channel": channel, "seq": 1})
		other.refused("FORBIDDEN", removeMember, vars{"channel": channel, "user": 1})
		other.refused("NOT_FOUND", deleteMessage, vars{"channel": channel, "seq": 4})
	}
	unchanged(t, s.database, before)

	backend.delete(channel, 1)
	creator.delete(channel, 2)
	backend.add(channel, 4)
	member.add(channel, 5)
	members := func() int {
		return ask[struct{ Channel struct{ MemberCount int } }](creator, `query ($id: ID!) { channel(id: $id) { memberCount } }`, vars{"id": channel}).Channel.MemberCount
	}
	expect(t, "members", members(), 5)
	creator.remove(channel, 5)
	creator.remove(channel, 5) // who is none stays none
	backend.remove(channel, 4)
	member.remove(channel, 2)
	expect(t, "members", members(), 2)
	if r := support.do(removeMember, vars{"channel": channel, "user": 3}); string(r.Data) != `{"removeMember":null}` {
		t.Errorf("whoever leaves sees %s", r.Data)
	}

	byService := s.group(2, 3)
	member.refused("FORBIDDEN", removeMember, vars{"channel": byService, "user": 3})
	expect(t, "a service's own badges", len(backend.page("includeMuted: true").Nodes), 1) // of the person whose number it has
	backend.refused("NOT_FOUND", sendMessage, vars{"channel": byService, "body": "hello"})
	backend.refused("NOT_FOUND", addMembers, vars{"channel": "9999999999999", "users": []id.User{1}})
}

func TestChannelIDsAreTheProducts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const create = `mutation ($id: ID!, $kind: ChannelKind!, $members: [ID!]!) { createChannel(input: {id: $id, kind: $kind, memberIds: $members}) { id } }`
	a := s.as(1)
	largest := "9223372036854775807"
	for _, channel := range []string{"1", largest} {
		made := ask[struct{ CreateChannel struct{ ID string } }](a, create, vars{"id": channel, "kind": "GROUP", "members": []id.User{2}})
		expect(t, "the channel", made.CreateChannel.ID, channel)
		for _, kind := range []string{"GROUP", "DIRECT"} {
			a.refused("CONFLICT", create, vars{"id": channel, "kind": kind, "members": []id.User{3}})
			s.backend().refused("CONFLICT", create, vars{"id": channel, "kind": kind, "members": []id.User{3, 4}})
		}
		expect(t, "its messages", a.sends(channel, 1), 1)
	}
	expect(t, "one badge of the creator for each channel", len(a.overview().Nodes), 2)
	expect(t, "and of whoever was refused", len(s.as(3).overview().Nodes), 0)
}

// A product that makes a direct channel under its own id is answered with the one that the two have already.
func TestDirectChannelKeepsItsFirstID(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const create = `mutation ($id: ID, $members: [ID!]!) { createChannel(input: {id: $id, kind: DIRECT, memberIds: $members}) { id } }`
	type made struct{ CreateChannel struct{ ID string } }
	first := ask[made](s.as(2), create, vars{"members": []id.User{3}}).CreateChannel.ID
	again := ask[made](s.backend(), create, vars{"id": "9001", "members": []id.User{2, 3}}).CreateChannel.ID
	expect(t, "the channel of the two", again, first)
}

func TestTwoPeopleHaveOneDirectChannel(t *testing.T) {
	t.Parallel()
	s := serve(t)
	type made struct{ CreateChannel struct{ ID string } }
	for pair := range 40 {
		left, right := id.User(2*pair+1), id.User(2*pair+2)
		create := func(viewer, other id.User) made {
			input := vars{"kind": "DIRECT", "memberIds": []id.User{other}}
			if pair%2 == 0 { // the products of both know the channel's id already
				input["id"] = 1000 + pair
			}
			return ask[made](s.as(viewer), `mutation ($input: CreateChannelInput!) { createChannel(input: $input) { id } }`, vars{"input": input})
		}
		var lefts, rights made
		together(func() { lefts = create(left, right) }, func() { rights = create(right, left) })
		expect(t, "the channel", lefts, rights)
		expect(t, "the channel, made again", create(left, right), lefts)
		expect(t, "the channel, made by a service", s.backend().create("DIRECT", "", right, left), lefts.CreateChannel.ID)
		expect(t, "badges", len(s.as(left).page("includeMuted: true").Nodes), 1)
	}
}

func TestDirectChannelHasFixedMembers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a := s.as(1)
	direct := a.create("DIRECT", "", 2)
	before := contents(t, s.database)
	for _, c := range []client{a, s.backend()} {
		message := c.refused("BAD_USER_INPUT", `mutation ($id: ID!) { addMembers(channelId: $id, userIds: [3]) { id } }`, vars{"id": direct})
		if !strings.HasPrefix(message, "channelId ") {
			t.Errorf("got %q", message)
		}
		for _, user := range []id.User{1, 2} {
			c.refused("BAD_USER_INPUT", `mutation ($id: ID!, $user: ID!) { removeMember(channelId: $id, userId: $user) { id } }`, vars{"id": direct, "user": user})
		}
	}
	unchanged(t, s.database, before)
}
