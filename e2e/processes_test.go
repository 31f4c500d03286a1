package e2e_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/postgres/pgtest"
	"tidemark/internal/redis/redistest"
)

func TestR01DevicesRaceAcrossProcesses(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	raceMarks(t, e.serve(t), e.serve(t))
}

func TestD07SendTwiceAcrossProcesses(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	sendTwice(t, e.serve(t), e.serve(t))
}

func TestPostgresIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	postgres := pgtest.NewServer(t)
	s := engines{database: postgres.URL(), redis: redistest.New(t)}.serve(t)
	loseNothing(t, []*server{s}, func() {
		postgres.Kill()
		postgres.Start()
	})
}

func TestProcessIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	e := newEngines(t)
	servers := []*server{e.serve(t), e.serve(t), e.serve(t), e.serve(t)}
	killed := 0
	loseNothing(t, servers, func() {
		killed++
		servers[killed].kill()
	})
}

// loseNothing has people send to one channel through servers, the next where one is gone, and brings about a crash
// three times meanwhile. What was answered must be there once, and nothing else. The first server stays.
func loseNothing(t *testing.T, servers []*server, crash func()) {
	t.Helper()
	const senders, each, crashes = 8, 60, 3
	members := make([]id.User, senders)
	for i := range members {
		members[i] = id.User(i) + 1
	}
	reader := id.User(senders + 1)
	channel := servers[0].group(append(members, reader)...)
	body := func(i, n int) string { return fmt.Sprintf("message %d of %d", n, i) }

	answers := make([][each]sent, senders)
	answered := make(chan struct{}, senders*each)
	var sending sync.WaitGroup
	for i, sender := range members {
		sending.Go(func() {
			for n := range each {
				answers[i][n] = deliver(t, sender, vars{"channel": channel, "body": body(i, n), "clientId": strconv.Itoa(n)}, servers...)
				answered <- struct{}{}
			}
		})
	}
	for range crashes {
		for range senders * each / (crashes + 1) {
			<-answered
		}
		crash()
	}
	sending.Wait()

	expect(t, "the bound", servers[0].as(reader).badge(channel).UnreadUpperBound, senders*each)
	there := make(map[string]message)
	for i, m := range servers[0].as(reader).messages(channel, 500) {
		expect(t, "a seq", m.Seq, int64(i)+1)
		there[m.ID] = m
	}
	expect(t, "messages", len(there), senders*each)
	for i := range answers {
		for n, told := range answers[i] {
			if m := there[told.Message.ID]; m.Seq != told.Message.Seq || m.Body != body(i, n) {
				t.Errorf("%s was answered with %+v, and there is %+v", body(i, n), told.Message, m)
			}
		}
	}
}

// deliver sends a message as an app does that must not lose it: under a name, and until it is answered, by whichever
// server.
func deliver(t *testing.T, sender id.User, variables vars, servers ...*server) (answer sent) {
	t.Helper()
	next := int(sender)
	eventually(t, "a send is answered", func() bool {
		next++
		c := servers[next%len(servers)].as(sender)
		r, err := c.try(sendMessage, variables)
		if err != nil || r.code() == "UNAVAILABLE" {
			return false
		}
		answer = data[struct{ SendMessage sent }](c, r).SendMessage
		return true
	})
	return answer
}
