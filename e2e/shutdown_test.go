package e2e_test

import (
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestRunningCallsEndBeforeTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, channel := s.as(1), s.group(1, 2)
	release := holdHead(t, s.database, channel)
	var calling sync.WaitGroup
	var answer sent
	calling.Go(func() { answer = a.send(channel, "hello") })
	awaitBlocked(t, s.database)

	s.signal(syscall.SIGTERM)
	address := strings.TrimPrefix(s.url, "http://")
	eventually(t, "new connections are refused", func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		return err != nil || conn.Close() != nil
	})
	select {
	case <-s.ended:
		t.Fatal("the server has ended under a call that runs")
	default:
	}
	release()
	calling.Wait()
	expect(t, "the answer", answer.Message.Seq, 1)
	expect(t, "the exit code", s.wait(), 0)
}

func TestServerEndsWhenItHasDrainedForLongEnough(t *testing.T) {
	t.Parallel()
	s := serve(t, "TIDEMARK_DRAIN_TIMEOUT=1s", "TIDEMARK_LOCK_TIMEOUT=1m", "TIDEMARK_STATEMENT_TIMEOUT=1m", "TIDEMARK_REQUEST_TIMEOUT=1m")
	a, channel := s.as(1), s.group(1, 2)
	release := holdHead(t, s.database, channel)
	before := contents(t, s.database)
	var calling sync.WaitGroup
	calling.Go(func() {
		if r, err := a.try(sendMessage, vars{"channel": channel, "body": "hello"}); err == nil && r.code() != "UNAVAILABLE" {
			t.Errorf("the call that was cut off is answered with %s", r.body)
		}
	})
	awaitBlocked(t, s.database)

	asked := time.Now()
	s.signal(syscall.SIGTERM)
	expect(t, "the exit code", s.wait(), 0)
	if took := time.Since(asked); took < time.Second || took > 5*time.Second {
		t.Errorf("it drained for %v, want 1 s and no more than it takes to close", took)
	}
	calling.Wait()
	release()
	unchanged(t, s.database, before)
}

func TestInterruptedServerEnds(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.signal(syscall.SIGINT)
	expect(t, "the exit code", s.wait(), 0)
}
