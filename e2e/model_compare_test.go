package e2e_test

import (
	"cmp"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/internal/channel"
	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/readstate"
)

type seatKey struct {
	who       id.User
	channelID id.Channel
}

// shown is the last badge that somebody has seen of a channel.
type shown struct {
	version id.Seq
	view    badgeView
	gone    bool // they have been no member since
}

// place is where a message stands.
type place struct {
	channelID id.Channel
	seq       id.Seq
}

// badgeView is what can be seen of a badge, but for its version.
type badgeView struct {
	ChannelID                            id.Channel
	HighWaterSeq, LastReadSeq, JoinedSeq id.Seq
	ReadEpoch                            int
	Muted                                bool
	UpperBound, Unread, Mentions         int
}

// messageView is what can be seen of a message.
type messageView struct {
	Seq             id.Seq
	Sender          id.User
	Body            string
	Deleted         bool
	MentionsViewer  bool
	ClientMessageID string
}

// compare holds all that everybody sees against the reference. Of the channels' insides it looks at the one that the
// last step was about.
func (m *machine) compare(t *rapid.T) {
	m.steps++
	limit := []int{readstate.DefaultCap, 1, 2}[m.steps%3]
	for _, who := range m.people {
		m.compareBadges(t, who, limit)
		m.compareChannel(t, who, m.touched)
	}
	m.compareMembers(t, m.touched)
}

func (m *machine) compareBadges(t *rapid.T, who id.User, limit int) {
	var all []*room
	var total readstate.Total
	for _, room := range m.reference.rooms {
		seat := room.seat(who)
		if seat == nil {
			m.gone(who, room)
			continue
		}
		all = append(all, room)
		if unread, naming := room.unread(who); !seat.muted && unread > 0 {
			total.Countable += unread
			total.Naming += naming
			total.UnreadChannels++
		}
	}
	slices.SortFunc(all, func(a, b *room) int { return cmp.Compare(b.activeAt, a.activeAt) })

	m.compareList(t, who, all, total, readstate.Filter{IncludeMuted: true, First: readstate.MaxPage, Cap: limit})
	m.compareList(t, who, all, total, readstate.Filter{
		OnlyUnread: m.steps%2 == 0, IncludeMuted: m.steps%4 < 2, First: 1 + m.steps%3, Cap: limit,
	})
	if m.steps%3 == 0 {
		got, err := m.readStates.Total(t.Context(), who, limit)
		wantCode(t, err, done)
		wantTotal(t, got, total, limit)
	}
}

// compareList walks through all pages of a list.
func (m *machine) compareList(t *rapid.T, who id.User, rooms []*room, total readstate.Total, filter readstate.Filter) {
	listed := slices.Clone(rooms)
	listed = slices.DeleteFunc(listed, func(room *room) bool {
		unread, _ := room.unread(who)
		return filter.OnlyUnread && unread == 0 || !filter.IncludeMuted && room.seat(who).muted
	})
	for more := true; more; {
		page, err := m.readStates.List(t.Context(), who, filter)
		wantCode(t, err, done)
		wantTotal(t, page.Total, total, filter.Cap)
		m.wantStoreEpoch(t, page.StoreEpoch)
		n := min(filter.First, len(listed))
		if len(page.Badges) != n || page.HasNext != (len(listed) > n) {
			t.Fatalf("person %d, %+v: %d badges, more: %v; want %d of %d", who, filter, len(page.Badges), page.HasNext, n, len(listed))
		}
		for i, badge := range page.Badges {
			m.wantBadge(t, who, listed[i], badge, filter.Cap)
			filter.After = &badge.Activity
		}
		listed, more = listed[n:], page.HasNext
	}
}

func (m *machine) compareChannel(t *rapid.T, who id.User, room *room) {
	viewer := person.Viewer{ID: who}
	seen, err := m.channels.Get(t.Context(), viewer, room.id)
	seat := room.seat(who)
	if seat == nil {
		wantCode(t, err, fault.NotFound)
		_, err := m.readStates.Badge(t.Context(), who, room.id, readstate.DefaultCap)
		wantCode(t, err, fault.NotFound)
		_, err = m.inspector.Explain(t.Context(), viewer, who, room.id, readstate.DefaultCap)
		wantCode(t, err, fault.NotFound)
		return
	}
	wantCode(t, err, done)
	m.wantChannel(t, who, room, seen)
	m.compareExplanation(t, who, room)

	size := channel.MaxPage
	if m.steps%4 == 0 {
		size = 3
	}
	seq := room.head()
	for before, more := (*id.Seq)(nil), true; more; {
		page, err := m.channels.Messages(t.Context(), viewer, seen, before, size)
		wantCode(t, err, done)
		for _, message := range slices.Backward(page) {
			m.wantMessage(t, who, room, seq, message)
			seq--
		}
		if more = len(page) == size; more {
			before = &page[0].Seq
		}
	}
	if seq != seat.joined {
		t.Fatalf("person %d sees the messages after %d, want those after %d", who, seq, seat.joined)
	}
}

func (m *machine) compareMembers(t *rapid.T, room *room) {
	want := room.members()
	for after, more := id.User(0), true; more; {
		page, err := m.channels.Members(t.Context(), room.id, 2, after)
		wantCode(t, err, done)
		n := min(2, len(want))
		if len(page.Members) != n || page.HasNext != (len(want) > n) {
			t.Fatalf("members %v, more: %v; want %d of %v", page.Members, page.HasNext, n, want)
		}
		for i, member := range page.Members {
			if member != person.Called(want[i], "") {
				t.Fatalf("member %v, want %d", member, want[i])
			}
			after = member.ID
		}
		want, more = want[n:], page.HasNext
	}
}

// wantBadge compares a badge, and holds its version against the one shown before: it never falls, and it rises where
// anything else changed.
func (m *machine) wantBadge(t *rapid.T, who id.User, room *room, badge readstate.Badge, limit int) {
	t.Helper()
	unread, naming := room.unread(who)
	seat := room.seat(who)
	want := badgeView{
		ChannelID: room.id, HighWaterSeq: room.head(), LastReadSeq: seat.cursor(), JoinedSeq: seat.joined,
		ReadEpoch: seat.epoch, Muted: seat.muted,
		UpperBound: int(room.head() - seat.cursor()), Unread: unread, Mentions: naming,
	}
	got := badgeView{
		ChannelID: badge.ChannelID, HighWaterSeq: badge.HighWaterSeq, LastReadSeq: badge.LastReadSeq, JoinedSeq: badge.JoinedSeq,
		ReadEpoch: badge.ReadEpoch, Muted: badge.Muted,
		UpperBound: badge.UnreadUpperBound(), Unread: unread, Mentions: naming,
	}
	wantSame(t, "badge", got, want)
	wantCount(t, "unread", badge.Unread, unread, limit)
	wantCount(t, "mentions", badge.Mentions, naming, limit)

	key := seatKey{who, room.id}
	last, ok := m.shown[key]
	if ok && (badge.Version() < last.version || badge.Version() == last.version && (want != last.view || last.gone)) {
		t.Fatalf("version %d of %+v follows version %d of %+v", badge.Version(), got, last.version, last.view)
	}
	m.shown[key] = shown{version: badge.Version(), view: want}
}

func (m *machine) gone(who id.User, room *room) {
	key := seatKey{who, room.id}
	if last, ok := m.shown[key]; ok {
		last.gone = true
		m.shown[key] = last
	}
}

func (m *machine) wantResult(t *rapid.T, who id.User, room *room, got readstate.Result, want readstate.Outcome) {
	t.Helper()
	if got.Outcome != want || (got.Badge == nil) != (want == readstate.NotFound) {
		t.Fatalf("outcome %s with badge %+v, want %s", got.Outcome, got.Badge, want)
	}
	if got.Badge != nil {
		m.wantBadge(t, who, room, *got.Badge, readstate.DefaultCap)
	}
}

func (m *machine) wantMessage(t *rapid.T, who id.User, room *room, seq id.Seq, message channel.Message) {
	t.Helper()
	post := room.posts[seq-1]
	want := messageView{
		Seq: seq, Sender: post.sender, Body: post.body, Deleted: post.deletedAt > 0,
		MentionsViewer: slices.Contains(post.named, who),
	}
	if who == post.sender {
		want.ClientMessageID = post.clientID
	}
	wantSame(t, "message", viewOf(message), want)
	at := place{room.id, seq}
	if there, ok := m.ids[message.ID]; ok && there != at {
		t.Fatalf("message %d stands at %+v and at %+v", message.ID, there, at)
	}
	m.ids[message.ID] = at
}

func (m *machine) wantChannel(t *rapid.T, who id.User, room *room, got channel.Channel) {
	t.Helper()
	members := room.members()
	want := channel.Channel{ID: room.id, Kind: room.kind, Name: room.name, MemberCount: len(members), HighWaterSeq: room.head()}
	if who != nobody {
		want.VisibleAfter = room.seat(who).joined
	}
	if room.kind == channel.Direct {
		other := members[0]
		if other == who {
			other = members[1]
		}
		want.Name = person.Called(other, "").DisplayName
	}
	got.PeerReadSeq = nil // the model of receipts knows it
	wantSame(t, "channel", got, want)
}

func (m *machine) wantStoreEpoch(t *rapid.T, epoch string) {
	t.Helper()
	if m.storeEpoch == "" {
		m.storeEpoch = epoch
	}
	wantSame(t, "store epoch", epoch, m.storeEpoch)
}

func viewOf(message channel.Message) messageView {
	view := messageView{
		Seq: message.Seq, Sender: message.Sender.ID, Body: message.Body,
		Deleted: message.Deleted, MentionsViewer: message.MentionsViewer,
	}
	if message.ClientMessageID != nil {
		view.ClientMessageID = *message.ClientMessageID
	}
	return view
}

func wantTotal(t *rapid.T, got, want readstate.Total, limit int) {
	t.Helper()
	wantCount(t, "unread in total", got.Unread, want.Countable, limit)
	wantCount(t, "mentions in total", got.Mentions, want.Naming, limit)
	wantSame(t, "unread channels", got.UnreadChannels, want.UnreadChannels)
}

func wantCount(t *rapid.T, what string, count func(limit int) (readstate.Count, error), n, limit int) {
	t.Helper()
	got, err := count(limit)
	wantCode(t, err, done)
	wantSame(t, what, got, readstate.Count{Count: min(n, limit), Capped: n > limit})
}

func wantSame[V any](t *rapid.T, what string, got, want V) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *rapid.T, err error, want fault.Code) {
	t.Helper()
	got := done
	if err != nil {
		got = fault.CodeOf(err)
	}
	if got != want {
		t.Fatalf("the call answers %q (%v), want %q", got, err, want)
	}
}
