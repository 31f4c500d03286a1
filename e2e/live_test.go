package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/internal/id"
)

func TestD02ReplyFromThePhone(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	web := s.as(1).watch(nil)
	s.as(2).sends(channel, 3)
	web.shows(channel, 3, 3)
	s.as(1).on("phone").send(channel, "a reply")
	web.shows(channel, 0, 0)
}

func TestD03OwnMessagesOnAnotherDevice(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	other := s.as(1).watch(nil)
	s.as(1).sends(channel, 5)
	other.within(soon, "the newest message shows", func() bool { return other.badges[channel].HighWaterSeq == 5 })
	for _, event := range other.events {
		if event.Total.Unread.Count > 0 {
			t.Errorf("it showed %+v", event)
		}
	}
}

func TestD04ReadOnAnotherDevice(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	s.as(2).sends(channel, 4)
	one := s.as(1).watch(nil)
	one.shows(channel, 4, 4)
	s.as(1).on("two").markRead(channel, 4)
	one.shows(channel, 0, 0)
}

func TestL01TheFirstFrameIsAbsolute(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	first := s.as(1).watch(nil)
	first.socket.cut()
	s.as(2).sends(channel, 4)
	again := s.as(1).watch(nil)
	expect(t, "the first frame", again.events[0].Badges[0].Unread.Count, 4)
}

// L06: a network goes away with no close. Within two pings all is gone.
func TestL06AClientThatVanishes(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_PING_EVERY=1s")
	s.group(1, 2)
	silent := s.as(1).watch(nil)
	silent.socket.mu.Lock()
	silent.socket.deaf = true // what is sent to it arrives, and nothing comes back
	silent.socket.mu.Unlock()
	expect(t, "people looked at", s.metric("tidemark_live_people"), 1)
	within(t, 4*time.Second, "nobody is looked at", func() bool {
		return s.metric("tidemark_live_people") == 0 && s.metric("tidemark_live_websockets") == 0
	})
	expect(t, "the code", silent.socket.closed(), 4408)
}

func TestL07AMessageAndItsBadge(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	socket := s.as(1).dial()
	shown := socket.watch("badges", nil)
	events := socket.events("events", vars{"channel": channel})
	for n := range 20 {
		s.as(2).send(channel, "hello")
		seq := int64(n) + 1
		events.await("the message comes", func() bool { return slices.Contains(events.held, seq) })
		shown.within(soon, "its badge comes", func() bool { return shown.badges[channel].HighWaterSeq >= seq })
		expect(t, "a query after it", s.as(1).badge(channel).Unread.Count, n+1)
	}
}

func TestL09ManyChannelsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const channels = 500
	var last string
	for range channels {
		last = s.group(1, 2)
	}
	shown := s.as(1).watch(nil)
	expect(t, "badges of the snapshot", len(shown.events[0].Badges), channels)
	s.as(2).send(last, "hello")
	shown.shows(last, 1, 1)
	expect(t, "events", len(shown.events), 2)
	expect(t, "badges of the second", len(shown.events[1].Badges), 1)
}

func TestM03LeavingIsTold(t *testing.T) {
	t.Parallel()
	s := serve(t)
	here, there := s.group(1, 2), s.group(1, 2)
	s.as(2).sends(here, 7)
	s.as(2).sends(there, 2)
	shown := s.as(1).watch(nil)
	expect(t, "the total", shown.total.Unread.Count, 9)
	events := shown.socket.events("events", vars{"channel": here})
	s.as(1).remove(here, 1)
	shown.within(soon, "it is removed", func() bool { return len(shown.badges) == 1 && shown.total.Unread.Count == 2 })
	expect(t, "what is told", fmt.Sprint(shown.events[len(shown.events)-1].RemovedChannelIDs), fmt.Sprint([]string{here}))
	events.await("its events end", func() bool { return events.ended != nil })
	expect(t, "how they end", events.ended.Type+events.ended.code(), "errorNOT_FOUND")

	// Who is removed gets nothing more.
	s.as(2).send(here, "a secret")
	s.as(2).send(there, "hello")
	shown.shows(there, 3, 3)
	events.look()
	if _, still := shown.badges[here]; still || len(events.held) > 0 {
		t.Errorf("told after all: %+v, %v", shown.badges[here], events.held)
	}
}

func TestM07MutedChannels(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel, other := s.group(1, 2), s.group(1, 2)
	s.as(1).mute(channel, true)
	s.as(2).send(channel, "hello", 1)
	without, with := s.as(1).watch(nil), s.as(1).watch(vars{"muted": true})
	expect(t, "badges without", len(without.badges), 1)
	expect(t, "badges with", len(with.badges), 2)
	expect(t, "mentions with", with.badges[channel].Mentions.Count, 1)
	expect(t, "the totals", without.total, with.total)
	s.as(2).send(channel, "hello again")
	with.shows(channel, 2, 0)
	s.as(2).send(other, "hello")
	without.shows(other, 1, 1)
	for _, event := range without.events {
		for _, b := range event.Badges {
			if b.Channel.ID == channel {
				t.Errorf("the muted channel is told of: %+v", b)
			}
		}
	}
	s.as(1).mute(channel, false)
	without.shows(channel, 2, 3)
	s.as(1).mute(channel, true)
	without.within(soon, "the mute is told once", func() bool { return without.badges[channel].Muted && without.total.Unread.Count == 1 })
}

// Two processes serve one another's subscribers. One is killed: its subscribers come back to the other, and see the
// truth.
func TestSubscribersOfTwoProcesses(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	here, there := e.serve(t), e.serve(t)
	channel := here.group(1, 2, 3)
	screens := []*screen{here.as(1).watch(nil), there.as(1).watch(nil), there.as(2).watch(nil)}
	here.as(3).send(channel, "from here")
	there.as(3).send(channel, "from there")
	for _, s := range screens {
		s.shows(channel, 2, 2)
	}
	there.as(1).markRead(channel, 2)
	screens[0].shows(channel, 0, 0)
	screens[1].shows(channel, 0, 0)
	there.kill()
	expect(t, "the code of a crash", screens[1].socket.closed(), websocket.CloseAbnormalClosure)
	here.as(3).send(channel, "meanwhile")
	back := []*screen{here.as(1).watch(nil), here.as(2).watch(nil)}
	expect(t, "the first, back", back[0].badges[channel].Unread.Count, 1)
	expect(t, "the second, back", back[1].badges[channel].Unread.Count, 3)
	screens[0].shows(channel, 1, 1)
}

// On SIGTERM a socket is closed with a code that makes clients come back, never by completing what they listen to, and
// an event stream just ends.
func TestRestartIsTold(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.group(1, 2)
	shown := s.as(1).watch(nil)
	stream := s.as(1).stream(watchBadges)
	s.stop()
	expect(t, "the code", shown.socket.closed(), 1012)
	if shown.look(); shown.ended != nil {
		t.Errorf("ended by %s", shown.ended.Type)
	}
	if rest := stream(); strings.Contains(rest, "complete") || !strings.Contains(rest, `"snapshot":true`) {
		t.Errorf("the event stream was %q", rest)
	}
}

// Redis is killed, paused and started again under subscribers of two processes.
func TestRedisVanishesUnderSubscribers(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	here, there := e.serve(t), e.serve(t)
	channel := here.group(1, 2)
	shown := here.as(1).watch(nil)
	unread := 0
	for _, fault := range []struct {
		name       string
		begin, end func()
	}{
		{"killed", e.redis.Kill, e.redis.Start},
		{"paused", e.redis.Pause, e.redis.Resume},
		{"flushed", func() { e.flushRedis(t) }, func() {}},
	} {
		fault.begin()
		there.as(2).send(channel, "meanwhile")
		fault.end()
		there.as(2).send(channel, "and after")
		unread += 2
		shown.await(fmt.Sprintf("%d unread after Redis was %s", unread, fault.name), func() bool {
			return shown.badges[channel].Unread.Count == unread
		})
	}
}

func TestSubscribeAsNobody(t *testing.T) {
	t.Parallel()
	s := serve(t)
	if _, err := s.bearing("no token").tryDial(); err == nil || !strings.Contains(err.Error(), "4403") {
		t.Errorf("a socket: %v", err)
	}
	expect(t, "an event stream", s.bearing("no token").do(`subscription { badgeChanged { snapshot } }`, nil).code(), "UNAUTHENTICATED")
	channel := s.group(2, 3)
	for _, c := range []string{channel, "999999"} {
		expect(t, "events of channel "+c, s.as(1).do(`subscription ($c: ID!) { channelEvents(channelId: $c) { __typename } }`, vars{"c": c}).code(), "NOT_FOUND")
	}
	r := s.as(1).do(`subscription ($c: [ID!]) { badgeChanged(channelIds: $c) { badges { id } } }`, vars{"c": []string{channel}})
	expect(t, "badges of others", string(r.Data), `{"badgeChanged":{"badges":[]}}`)
}

// What validation lets pass under two names is one field too many all the same.
func TestASubscriptionIsOneField(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, query := range []string{
		`subscription { a: badgeChanged { snapshot } b: badgeChanged { snapshot } }`,
		`subscription { badgeChanged { snapshot } channelEvents(channelId: 1) { __typename } }`,
		`subscription { ... { badgeChanged { snapshot } } ... on Subscription { b: badgeChanged { snapshot } } }`,
	} {
		expect(t, query, s.as(1).do(query, nil).code(), "GRAPHQL_VALIDATION_FAILED")
	}
	expect(t, "over POST", s.as(1).post(`subscription { badgeChanged { snapshot } }`).code(), "BAD_USER_INPUT")
}

// listener follows a channel's events.
type listener struct {
	t      *testing.T
	socket *socket
	id     string
	held   []int64
	gone   []int64
	resync []string
	ended  *ending
}

// ending is how an operation ended.
type ending struct{ frame }

func (e ending) code() string {
	var errs []problem
	if json.Unmarshal(e.Payload, &errs) != nil || len(errs) == 0 {
		return ""
	}
	return errs[0].Extensions.Code
}

func (s *socket) events(id string, variables vars) *listener {
	s.t.Helper()
	s.subscribe(id, `subscription ($channel: ID!, $after: Seq, $since: Seq) {
		channelEvents(channelId: $channel, after: $after, sinceVersion: $since) { __typename
			... on MessageAdded { message { seq } version }
			... on MessageDeleted { seq version }
			... on ResyncNeeded { reason } } }`, variables)
	// A call after it on the same socket is answered when it is open.
	s.subscribe(id+" opened", `{ me { id } }`, nil)
	return &listener{t: s.t, socket: s, id: id}
}

func (l *listener) look() {
	l.t.Helper()
	for _, f := range l.socket.of(l.id) {
		if f.Type != "next" {
			l.ended = &ending{f}
			continue
		}
		var r struct {
			Data struct {
				ChannelEvents struct {
					Type    string `json:"__typename"`
					Message struct{ Seq int64 }
					Seq     int64
					Reason  string
				}
			}
		}
		decode(l.t, string(f.Payload), &r)
		switch e := r.Data.ChannelEvents; e.Type {
		case "MessageAdded":
			l.held = append(l.held, e.Message.Seq)
		case "MessageDeleted":
			l.gone = append(l.gone, e.Seq)
		default:
			l.resync = append(l.resync, e.Reason)
		}
	}
}

func (l *listener) await(what string, holds func() bool) {
	l.t.Helper()
	timer := time.NewTimer(soon)
	defer timer.Stop()
	for {
		more := l.socket.await(l.id)
		if l.look(); holds() {
			return
		}
		select {
		case <-more:
		case <-timer.C:
			l.t.Errorf("not within %v: %s; held are %v", soon, what, l.held)
			return
		}
	}
}

// members are people from one number to another.
func members(from, to id.User) (people []id.User) {
	for user := from; user <= to; user++ {
		people = append(people, user)
	}
	return people
}

// One send shows with everybody, however many look.
func TestManySubscribersOfOneChannel(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const people, published = 200, "tidemark_live_publishes_total"
	channel := s.group(members(1, people)...)
	var screens []*screen
	for user := range id.User(people) {
		screens = append(screens, s.as(user+1).watch(nil))
	}
	// The channel and each who was added; some perhaps before the link was up.
	eventually(t, "all that was done so far is published", func() bool {
		return s.metric(published)+s.metric("tidemark_live_publishes_lost_total") == people+1
	})
	before := s.metric(published)
	s.as(1).send(channel, "hello, all")
	for i, shown := range screens {
		unread := 1
		if i == 0 {
			unread = 0
		}
		shown.within(soon, "the message shows", func() bool {
			return shown.badges[channel].HighWaterSeq == 1 && shown.badges[channel].Unread.Count == unread
		})
	}
	expect(t, "publications of a send", s.metric(published)-before, 1)
}
