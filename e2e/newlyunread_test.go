package e2e_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/internal/id"
	"tidemark/internal/person"
)

// icon is what the messages icon shows.
type icon struct {
	Count   int
	Capped  bool
	Label   string
	Senders []struct {
		User struct{ ID, DisplayName string }
	}
	AsOf           string
	AcknowledgedAt *time.Time
}

const iconFields = ` { count capped label senders { user { id displayName } latestAt } asOf acknowledgedAt }`

func (c client) icon() icon {
	c.t.Helper()
	return ask[struct{ NewlyUnread icon }](c, `{ newlyUnread`+iconFields+` }`, nil).NewlyUnread
}

// acknowledge acknowledges up to a position, and where it is empty up to now.
func (c client) acknowledge(asOf string) icon {
	c.t.Helper()
	variables := vars{}
	if asOf != "" {
		variables["asOf"] = asOf
	}
	return ask[struct{ Acknowledge icon }](c, `mutation ($asOf: Position) { acknowledge(asOf: $asOf)`+iconFields+` }`, variables).Acknowledge
}

// writers are the ids of those who wrote, newest first.
func (i icon) writers() []string {
	ids := make([]string, len(i.Senders))
	for n, s := range i.Senders {
		ids[n] = s.User.ID
	}
	return ids
}

// writtenBy waits until these people have written, newest first.
func (c client) writtenBy(people ...id.User) icon {
	c.t.Helper()
	want := make([]string, len(people))
	for i, user := range people {
		want[i] = user.String()
	}
	var shown icon
	within(c.t, soon, fmt.Sprintf("%v have written", want), func() bool {
		shown = c.icon()
		return slices.Equal(shown.writers(), want)
	})
	expect(c.t, "the count", shown.Count, len(people))
	return shown
}

// settle waits until all that was sent counts to whom it counts, and copies in Redis have it as far as they are trusted.
func (s *server) settle() {
	s.t.Helper()
	rdb := s.rdb(s.t)
	defer rdb.Close()
	conn := connect(s.t, s.database)
	defer conn.Close(s.t.Context())
	within(s.t, soon, "all has arrived", func() bool {
		if scan[int64](s.t, conn, `SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM arrival_event)`) > 0 {
			return false
		}
		rows, err := conn.Query(s.t.Context(), `SELECT partition, position FROM lease WHERE partition >= 0`)
		if err != nil {
			s.t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var partition, position int64
			if err := rows.Scan(&partition, &position); err != nil {
				s.t.Fatal(err)
			}
			mark := rdb.Get(s.t.Context(), fmt.Sprintf("newly_unread_mark:{%d}", partition)).Val()
			copied, _ := strconv.ParseInt(mark[strings.LastIndexByte(mark, ':')+1:], 10, 64)
			if mark != "" && copied < position {
				return false
			}
		}
		return true
	})
}

func TestN01ThreePeopleWrite(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3, 4)
	s.as(2).sends(channel, 100)
	s.as(3).send(channel, "hello")
	s.as(4).send(channel, "hello")
	shown := s.as(1).writtenBy(4, 3, 2)
	expect(t, "the label", shown.Label, "3")
	expect(t, "the viewer's count", ask[struct {
		Me struct{ NewlyUnreadCount int }
	}](s.as(1), `{ me { newlyUnreadCount } }`, nil).Me.NewlyUnreadCount, 3)
	var me struct {
		Count int `json:"newly_unread_count"`
	}
	decode(t, s.as(1).get("/me").body, &me)
	expect(t, "the one call", me.Count, 3)
}

func TestN02AcknowledgeLeavesBadges(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	s.as(2).sends(channel, 2)
	s.as(3).send(channel, "hello", 1)
	shown := s.as(1).writtenBy(3, 2)
	before := s.as(1).badge(channel)
	expect(t, "after it", s.as(1).acknowledge(shown.AsOf).Count, 0)
	expect(t, "again", s.as(1).acknowledge(shown.AsOf).Count, 0)
	expect(t, "the badge", s.as(1).badge(channel), before)
	if s.as(1).icon().AcknowledgedAt == nil {
		t.Error("nobody knows when")
	}
	s.as(1).markRead(channel, 3)
	s.as(2).send(channel, "and another")
	s.as(1).writtenBy(2)
	s.as(1).markRead(channel, 4)
	s.as(1).writtenBy(2) // to read changes nothing about it
}

func TestN03NeverAcknowledged(t *testing.T) {
	t.Parallel()
	s := serve(t)
	expect(t, "of nobody", s.as(1).icon().Count, 0)
	for user := range id.User(3) {
		s.as(user+2).send(s.as(user+2).create("DIRECT", "", 1), "hello")
	}
	if at := s.as(1).writtenBy(4, 3, 2).AcknowledgedAt; at != nil {
		t.Errorf("acknowledged at %v", at)
	}
}

func TestN04WhoWritesAfterTheReadCounts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	s.as(2).send(channel, "hello")
	shown := s.as(1).writtenBy(2)
	s.as(3).send(channel, "hello")
	s.settle()
	s.as(1).acknowledge(shown.AsOf)
	s.as(1).writtenBy(3)
}

// N04, where the send begins before the read and is committed after it.
func TestN04WhoBeganToWriteBeforeTheReadCounts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	s.as(2).send(channel, "hello")
	release := holdHead(t, s.database, channel)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.as(3).send(channel, "hello")
	}()
	conn := connect(t, s.database)
	within(t, soon, "the send has begun", func() bool {
		return scan[int64](t, conn, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) > 0
	})
	shown := s.as(1).writtenBy(2)
	release()
	<-sent
	s.settle()
	s.as(1).acknowledge(shown.AsOf)
	s.as(1).writtenBy(3)
}

// N15: what comes to a viewer is seen, whatever becomes of Redis.
func TestN15RedisIsEmptiedWhileViewing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2, 3)
	socket := s.as(1).dial()
	socket.subscribe("screen", `subscription { newlyUnreadChanged(viewing: true)`+iconFields+` }`, nil)
	within(t, soon, "the screen is open", func() bool { return len(socket.of("screen")) > 0 })
	s.as(2).send(channel, "hello")
	s.as(3).send(channel, "hello")
	seen := func() bool {
		s.settle()
		return s.as(1).icon().Count == 0 && count1(t, s.database, `SELECT count(*) FROM arrival v JOIN user_activity u ON u.user_id = v.recipient WHERE v.recipient = 1 AND v.latest <= u.acknowledged`) == 2
	}
	within(t, soon, "both are seen", seen)
	s.flushRedis(t)
	expect(t, "the icon", s.as(1).icon().Count, 0)
	s.as(2).send(channel, "again")
	within(t, soon, "who writes then is seen", seen)
}

func TestN09Many(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const people = 120
	for user := range id.User(people) {
		s.as(user+2).send(s.as(user+2).create("DIRECT", "", 1), "hello")
	}
	s.settle()
	shown := s.as(1).icon()
	expect(t, "the label", shown.Label, "99+")
	expect(t, "capped", shown.Capped, true)
	expect(t, "the count", shown.Count, 99)
	expect(t, "listed", len(shown.Senders), 10)
	all := ask[struct{ NewlyUnread icon }](s.as(1), `{ newlyUnread(first: 500)`+iconFields+` }`, nil).NewlyUnread
	expect(t, "all listed", len(all.Senders), people)
}

func TestN10ANewName(t *testing.T) {
	t.Parallel()
	s := serve(t)
	two := s.named(2, "Ben")
	two.send(two.create("DIRECT", "", 1), "hello")
	expect(t, "the name", s.as(1).writtenBy(2).Senders[0].User.DisplayName, "Ben")
	s.named(2, "Benjamin").icon()
	within(t, 20*time.Second, "the new name shows", func() bool { return s.as(1).icon().Senders[0].User.DisplayName == "Benjamin" })
}

func TestN12PositionsThatWereNeverGivenOut(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	s.as(2).send(channel, "hello")
	s.as(1).writtenBy(2)
	nextYear := strconv.FormatInt(time.Now().AddDate(1, 0, 0).UnixMicro(), 10)
	expect(t, "as now", s.as(1).acknowledge(base64.RawURLEncoding.EncodeToString([]byte(nextYear))).Count, 0)
	s.as(2).send(channel, "hello again")
	s.as(1).writtenBy(2)
	expect(t, "from before all", s.as(1).acknowledge(base64.RawURLEncoding.EncodeToString([]byte("0"))).Count, 1)
}

func TestN14TheSameSenderAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	channel := s.group(1, 2)
	s.as(2).send(channel, "hello")
	shown := s.as(1).writtenBy(2)
	s.as(2).send(channel, "hello again")
	s.settle()
	expect(t, "after it", s.as(1).acknowledge(shown.AsOf).Count, 1)
	expect(t, "up to now", s.as(1).acknowledge("").Count, 0)
}

// N16: what counted goes on to count, whatever becomes of the channel.
func TestN16WhatCountedCounts(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_NEWLY_UNREAD_MAX_MEMBERS=3")
	atLimit := s.group(1, 2, 3)
	s.as(2).send(atLimit, "hello")
	s.backend().add(atLimit, 4) // one too many from now on
	s.as(3).send(atLimit, "too many to count")
	s.as(3).send(s.group(1, 3), "hello")
	muted := s.group(1, 4)
	s.as(4).send(muted, "hello")
	s.settle() // or what is found out at muting arrives before what was sent before it
	s.as(1).mute(muted, true)
	left := s.group(1, 5)
	s.as(5).send(left, "hello")
	s.settle()
	s.as(1).remove(left, 1)
	deleted := s.group(1, 6)
	s.as(6).send(deleted, "hello")
	s.as(6).delete(deleted, 1)
	s.settle()
	s.as(1).writtenBy(6, 5, 4, 3, 2)
	s.as(1).acknowledge("")
	s.as(3).send(atLimit, "not named")
	s.as(4).send(muted, "muted by now")
	s.settle()
	expect(t, "what does not count", s.as(1).icon().Count, 0)
	s.as(3).send(atLimit, "named", 1)
	s.as(4).send(muted, "named", 1)
	s.settle()
	s.as(1).writtenBy(4, 3)
	s.as(1).acknowledge("")
	s.as(4).send(muted, "still muted")
	s.as(1).mute(muted, false)
	s.settle()
	expect(t, "what came muted", s.as(1).icon().Count, 0)
	s.as(4).send(muted, "muted no more")
	s.as(1).writtenBy(4)
}

// Live, on two processes; and what a viewer is shown counts no more.
func TestNewlyUnreadIsLive(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	here, there := e.serve(t), e.serve(t)
	channel := here.group(1, 2, 3)
	socket := here.as(1).dial()
	watch := func(id string, viewing bool) func(count int) {
		socket.subscribe(id, `subscription ($viewing: Boolean!) { newlyUnreadChanged(viewing: $viewing)`+iconFields+` }`, vars{"viewing": viewing})
		last := -1
		return func(count int) {
			t.Helper()
			within(t, soon, fmt.Sprintf("%s shows %d", id, count), func() bool {
				for _, f := range socket.of(id) {
					var r struct {
						Data struct{ NewlyUnreadChanged icon }
					}
					decode(t, string(f.Payload), &r)
					last = r.Data.NewlyUnreadChanged.Count
				}
				return last == count
			})
		}
	}
	shows := watch("icon", false)
	shows(0)
	there.as(2).send(channel, "hello")
	shows(1)
	here.as(3).send(channel, "hello")
	shows(2)
	there.as(1).acknowledge("")
	shows(0)
	there.as(2).send(channel, "hello")
	shows(1)
	views := watch("screen", true)
	views(0) // after it has shown 1
	shows(0)
	there.as(3).send(channel, "hello")
	within(t, soon, "who writes to a viewer counts no more", func() bool {
		here.settle()
		return here.as(1).icon().Count == 0 && there.as(2).badge(channel).HighWaterSeq == 4
	})
}

// Workers share the work, and take over from one that is killed.
func TestWorkersTakeOver(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	s := e.serve(t, "TIDEMARK_WITHOUT_WORKER=true")
	channel := s.group(1, 2)
	s.as(2).send(channel, "hello")
	one := start(t, e.settings("TIDEMARK_JWT_SECRET="), "work") // it takes no tokens
	worker := server{process: one, url: "http://" + one.says(`"msg":"working","address":"([^"]+)"`), http: newHTTPClient(t)}
	s.as(1).writtenBy(2)
	expect(t, "the worker's health", worker.bearing("").get("/healthz").status, http.StatusOK)
	eventually(t, "the worker is ready", func() bool { return strings.Contains(worker.bearing("").get("/readyz").body, `"status":"ready"`) })
	expect(t, "what it has stored", worker.metric("tidemark_newly_unread_stored_total"), 1)
	expect(t, "GraphQL", worker.bearing("").get("/graphql").status, http.StatusNotFound)
	two := start(t, e.settings(), "work")
	two.says(`"msg":"(working)"`)
	within(t, 15*time.Second, "they share", func() bool {
		return count1(t, s.database, `SELECT count(*) FROM (SELECT owner FROM lease WHERE until > now() GROUP BY owner HAVING count(*) > 20) AS owners`) == 2
	})
	one.kill()
	s.as(1).acknowledge("")
	s.as(2).send(channel, "who does it now?")
	within(t, 20*time.Second, "the other has taken over", func() bool { return s.as(1).icon().Count == 1 })
	two.stop()
	expect(t, "leases given back", count1(t, s.database, `SELECT count(*) FROM lease WHERE until > now()`), int64(0))
}

// count1 is the one number that a statement tells.
func count1(t *testing.T, database, sql string) int64 {
	t.Helper()
	conn := connect(t, database)
	defer conn.Close(t.Context())
	return scan[int64](t, conn, sql)
}

// named returns the client of a person whose token tells a name.
func (s *server) named(user id.User, name string) client {
	s.t.Helper()
	return s.bearing(sign(s.t, person.Viewer{ID: user, Name: name, Role: person.RoleUser}))
}
