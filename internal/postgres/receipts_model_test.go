package postgres_test

import (
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

// receiptModel is the service and, side by side, a reference that remembers each reading and knows no watermark.
type receiptModel struct {
	*domain
	group    id.Channel
	ids      []id.User
	members  map[id.User]int // since which act
	hides    map[id.User]bool
	messages []receiptMessage
	read     map[id.User]id.Seq // the cursor
	joined   map[id.User]id.Seq
	acts     int
}

type receiptMessage struct {
	sender  id.User
	at      int // which act
	readers map[id.User]bool
}

// TestModelOfReceipts does at random what people do and compares, after each step, who has read what.
func TestModelOfReceipts(t *testing.T) {
	t.Parallel()
	d := newDomain(t)
	next := id.User(100)
	rapid.Check(t, func(r *rapid.T) {
		m := &receiptModel{
			domain: d, members: make(map[id.User]int), hides: make(map[id.User]bool),
			read: make(map[id.User]id.Seq), joined: make(map[id.User]id.Seq),
		}
		for range 5 {
			next++
			m.ids = append(m.ids, next)
		}
		m.group = d.group(m.ids[0], m.ids[1:4]...)
		for _, who := range m.ids[:4] {
			m.members[who] = 0
		}
		r.Repeat(map[string]func(*rapid.T){
			"":        m.compare,
			"send":    m.sendSome,
			"read":    m.readSome,
			"again":   m.readSome,
			"unread":  m.unreadSome,
			"leave":   m.leaveOrJoin,
			"sharing": m.toggleSharing,
			"delete":  m.deleteSome,
		})
	})
}

func (m *receiptModel) somebody(r *rapid.T) id.User {
	m.acts++
	return rapid.SampledFrom(m.ids).Draw(r, "person")
}

func (m *receiptModel) isMember(who id.User) bool { _, member := m.members[who]; return member }

func (m *receiptModel) seq(r *rapid.T) id.Seq {
	return id.Seq(rapid.IntRange(0, len(m.messages)+1).Draw(r, "seq"))
}

func (m *receiptModel) sendSome(r *rapid.T) {
	who := m.somebody(r)
	if !m.isMember(who) {
		return
	}
	if _, err := m.trySend(r.Context(), who, m.group, ""); err != nil {
		r.Fatal(err)
	}
	m.messages = append(m.messages, receiptMessage{who, m.acts, make(map[id.User]bool)})
	m.reads(who, id.Seq(len(m.messages)))
}

// reads notes that somebody has come to see all messages up to one.
func (m *receiptModel) reads(who id.User, upTo id.Seq) {
	upTo = min(upTo, id.Seq(len(m.messages)))
	if upTo <= m.read[who] {
		return
	}
	m.read[who] = upTo
	for _, message := range m.messages[:upTo] {
		message.readers[who] = true
	}
}

func (m *receiptModel) readSome(r *rapid.T) {
	who, upTo := m.somebody(r), m.seq(r)
	cursor := readstate.Cursor{ChannelID: m.group, UpToSeq: upTo}
	if _, err := m.readStates.MarkRead(r.Context(), who, "", cursor, 99); (err == nil) != m.isMember(who) {
		r.Fatal(err)
	}
	if m.isMember(who) {
		m.reads(who, upTo)
	}
}

func (m *receiptModel) unreadSome(r *rapid.T) {
	who, from := m.somebody(r), m.seq(r)
	if _, err := m.readStates.MarkUnread(r.Context(), who, m.group, from, nil, 99); (err == nil) != m.isMember(who) {
		r.Fatal(err)
	}
	if m.isMember(who) {
		m.read[who] = max(m.joined[who], min(m.read[who], from-1))
	}
}

func (m *receiptModel) leaveOrJoin(r *rapid.T) {
	who, service := m.somebody(r), person.Viewer{Role: person.RoleService}
	if m.isMember(who) {
		delete(m.members, who)
		if _, err := m.channels.RemoveMember(r.Context(), service, m.group, who); err != nil {
			r.Fatal(err)
		}
		return
	}
	m.members[who] = m.acts
	m.read[who], m.joined[who] = id.Seq(len(m.messages)), id.Seq(len(m.messages))
	if _, err := m.channels.AddMembers(r.Context(), service, m.group, []id.User{who}); err != nil {
		r.Fatal(err)
	}
}

func (m *receiptModel) toggleSharing(r *rapid.T) {
	who := m.somebody(r)
	m.hides[who] = !m.hides[who]
	if err := m.receipts().SetSharing(r.Context(), who, !m.hides[who]); err != nil {
		r.Fatal(err)
	}
}

func (m *receiptModel) deleteSome(r *rapid.T) {
	if len(m.messages) == 0 {
		return
	}
	seq := id.Seq(rapid.IntRange(1, len(m.messages)).Draw(r, "seq"))
	if _, err := m.channels.Delete(r.Context(), person.Viewer{Role: person.RoleService}, m.group, seq); err != nil {
		r.Fatal(err)
	}
}

func (m *receiptModel) compare(r *rapid.T) {
	if len(m.messages) == 0 {
		return
	}
	n := rapid.IntRange(1, len(m.messages)).Draw(r, "compared")
	message, viewer := m.messages[n-1], rapid.SampledFrom(m.ids).Draw(r, "viewer")
	since, member := m.members[viewer]
	if !member || since > message.at {
		if _, err := m.receipts().Get(r.Context(), viewer, m.group, id.Seq(n)); fault.CodeOf(err) != fault.NotFound {
			r.Fatalf("message %d to %d: %v", n, viewer, err)
		}
		return
	}
	var readers, unread []id.User
	for who, since := range m.members {
		switch {
		case m.hides[viewer], m.hides[who], who == message.sender, since > message.at:
		case message.readers[who]:
			readers = append(readers, who)
		default:
			unread = append(unread, who)
		}
	}
	if err := m.compareReceipt(r.Context(), viewer, m.group, id.Seq(n), readers, unread); err != nil {
		r.Fatalf("message %d to %d: %v", n, viewer, err)
	}
}
