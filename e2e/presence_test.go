package e2e_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/id"
)

const whenOffline = "TIDEMARK_NEWLY_UNREAD_WHEN=offline"

// present waits until the servers on these engines know whether somebody is connected.
func (e engines) present(t *testing.T, user id.User, want bool) {
	t.Helper()
	options, err := goredis.ParseURL(e.redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := goredis.NewClient(options)
	defer rdb.Close()
	what := " is known to be connected"
	if !want {
		what = " is known to be away"
	}
	within(t, soon, user.String()+what, func() bool {
		n, err := rdb.Exists(t.Context(), "presence:{"+user.String()+"}").Result()
		return err == nil && (n == 1) == want
	})
}

// What comes while its reader has a websocket open does not count, whatever process that is on. What comes when the last
// one has ended does. Badges and catch-up are as ever.
func TestOnlyWhatCouldNotBeDeliveredCounts(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	here, there := e.serve(t, whenOffline), e.serve(t, whenOffline)
	channel := here.group(1, 2, 3)
	here.as(2).send(channel, "before anybody is there")
	here.as(1).writtenBy(2)
	here.as(1).acknowledge("")

	first, second := here.as(1).dial(), there.as(1).dial()
	e.present(t, 1, true)
	here.as(2).send(channel, "to one who is connected, and one who is not")
	there.as(2).send(channel, "named", 1)
	here.settle()
	expect(t, "of one who is connected", here.as(1).icon().Count, 0)
	expect(t, "the badge", here.as(1).badge(channel).Unread.Count, 3)
	here.as(3).writtenBy(2)

	first.cut()
	within(t, soon, "one is gone", func() bool { return here.metric("tidemark_presence_people") == 0 })
	here.as(2).send(channel, "to the other socket")
	here.settle()
	expect(t, "of one who has another socket", here.as(1).icon().Count, 0)

	second.cut()
	e.present(t, 1, false)
	here.as(3).send(channel, "to one who is away")
	here.as(1).writtenBy(3)
	expect(t, "what was not known", here.metric("tidemark_presence_unknown_total")+there.metric("tidemark_presence_unknown_total"), 0)
}

// An event stream is a connection too; a worker apart has none and asks all the same.
func TestPresenceIsAskedByAWorkerApart(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	s := e.serve(t, whenOffline, "TIDEMARK_WITHOUT_WORKER=true")
	worker := start(t, e.settings(whenOffline), "work")
	worker.says(`"msg":"(working)"`)
	channel := s.group(1, 2)
	rest := s.as(1).stream(`subscription { badgeChanged { snapshot } }`)
	e.present(t, 1, true)
	s.as(2).send(channel, "hello")
	s.settle()
	expect(t, "of one who listens", s.as(1).icon().Count, 0)
	s.stop() // all that it has noted is taken away
	if text := rest(); !strings.Contains(text, "event: next") {
		t.Errorf("the stream said %q", text)
	}
	e.present(t, 1, false)
	worker.stop()
}

// By default a message counts for those who are connected as well, and who that is is not noted.
func TestMessagesCountWhileConnected(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	s.as(1).dial()
	s.as(2).send(channel, "hello")
	s.as(1).writtenBy(2)
	s.present(t, 1, false)
	expect(t, "people noted", s.metric("tidemark_presence_people"), -1)
}

// While Redis is away nobody knows who is connected, and what comes counts.
func TestUnknownPresenceCounts(t *testing.T) {
	t.Parallel()
	s := serve(t, whenOffline)
	channel := s.group(1, 2)
	s.as(1).dial()
	s.present(t, 1, true)
	s.redis.Kill()
	s.as(2).send(channel, "hello")
	s.as(1).writtenBy(2)
	s.as(1).acknowledge("")
	s.redis.Start()
	within(t, 20*time.Second, "what comes counts no more", func() bool {
		s.as(1).acknowledge("")
		s.as(2).send(channel, "and now?")
		s.settle()
		return s.as(1).icon().Count == 0
	})
}

// L06: who has vanished with no close is away within two pings, and what comes then counts.
func TestL06PresenceOfAClientThatVanishes(t *testing.T) {
	t.Parallel()
	s := serve(t, whenOffline, "TIDEMARK_PING_EVERY=1s")
	channel := s.group(1, 2)
	silent := s.as(1).dial()
	s.present(t, 1, true)
	silent.mu.Lock()
	silent.deaf = true
	silent.mu.Unlock()
	s.present(t, 1, false)
	s.as(2).send(channel, "hello")
	s.as(1).writtenBy(2)
}

func TestNewlyUnreadWhenIsOneOfTwo(t *testing.T) {
	t.Parallel()
	code, _, stderr := run(t, []string{"TIDEMARK_NEWLY_UNREAD_WHEN=sometimes"}, "serve")
	if code == 0 || !strings.Contains(stderr, "--newly-unread-when") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
