package socket_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/graph/socket"
	"tidemark/internal/fault"
)

func TestAStreamIsDelivered(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(values)
	first := e.tap(t)
	c.send(subscribe("2", "subscription{other:values}"))
	second := e.tap(t)
	for i := range 100 {
		first.Say(fmt.Sprint(i))
		c.want(next("1", fmt.Sprintf(`{"values":%d}`, i)))
		second.Say(`"` + strings.Repeat("x", 1<<(i%20)) + `"`)
		if got := c.next(); !strings.HasPrefix(got, `{"id":"2","type":"next","payload":{"data":{"other":"x`) {
			t.Fatal(got)
		}
	}
	until(t, "both are open", func() bool { s := e.transport.Stats(); return s.Subscriptions == 2 && s.Calls == 0 && s.Sockets == 1 })
	c.send(complete("1"))
	receive(t, first.Closed, "the stream is closed")
	second.Say("0")
	c.want(next("2", `{"other":0}`))
	if got := e.transport.Stats().Subscriptions; got != 1 {
		t.Errorf("%d subscriptions are open", got)
	}
}

func TestValuesThatAreEncodedAlready(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(subscribe("1", "subscription{a:encoded}"))
	tap := e.tap(t)
	e.Fail(fault.Internal) // the executor is not asked
	for i := range 3 {
		tap.Say(fmt.Sprint(i))
		c.want(next("1", fmt.Sprintf(`{"a":%d}`, i)))
	}
}

// Whoever says something is never held up, and the last word arrives whenever it is said.
func TestTheLastValueArrives(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(values)
	tap := e.tap(t)
	const last = 3000
	var saying sync.WaitGroup
	for i := range 3 {
		saying.Go(func() {
			for j := i; j < last; j += 3 {
				tap.Say(fmt.Sprint(j))
			}
		})
	}
	go func() {
		saying.Wait()
		tap.Say(fmt.Sprint(last))
	}()
	for got := ""; got != next("1", fmt.Sprintf(`{"values":%d}`, last)); {
		got = c.next()
	}
	c.quiet()
}

func TestAStreamThatFailsEndsWithAnErrorAndWithoutComplete(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := open(t, func(c *socket.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	c := e.enter(t)
	c.send(values)
	tap := e.tap(t)
	tap.Say("1")
	c.want(next("1", `{"values":1}`))
	tap.End(fault.NoChannel())
	c.wantError("1", fault.NotFound)
	receive(t, tap.Closed, "the stream is closed")

	c.send(values)
	e.tap(t).End(errors.New("secret"))
	c.wantError("1", fault.Internal)
	c.quiet()
	if s := e.transport.Stats(); s.Subscriptions != 0 {
		t.Errorf("%+v", s)
	}
}

// A state that cannot be read for the moment is read again, and nothing is said in between.
func TestWhatCannotBeReadIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(values)
	tap := e.tap(t)
	for _, code := range []fault.Code{fault.Unavailable, fault.NotFound} {
		before := tap.Taken()
		e.Fail(code)
		tap.Say("1")
		until(t, "it was tried twice", func() bool { return tap.Taken() >= before+2 })
		tap.Say("2")
		c.quiet()
		e.Fail("")
		got := c.next()
		if got == next("1", `{"values":1}`) { // it had been taken already
			got = c.next()
		}
		if got != next("1", `{"values":2}`) {
			t.Fatal(got)
		}
	}
	if n := tap.Taken(); n > 8 {
		t.Errorf("it was tried %d times, in four seconds or so", n)
	}
	e.Fail(fault.Forbidden)
	tap.Say("3")
	c.want(`{"id":"1","type":"next","payload":{"errors":[{"message":"fails","extensions":{"code":"FORBIDDEN"}}],"data":null}}`)

	e.Fail(fault.Unavailable)
	before := tap.Taken()
	tap.Say("4")
	until(t, "it was tried", func() bool { return tap.Taken() > before })
	c.send(complete("1"))
	receive(t, tap.Closed, "the stream is closed, though it waits")
	c.quiet()
}

func TestAPanicEndsTheConnectionForNow(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := open(t, func(c *socket.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	c := e.enter(t)
	c.send(subscribe("1", "{panics}"))
	c.wantClose(websocket.CloseTryAgainLater)

	c = e.enter(t)
	c.send(values)
	tap := e.tap(t)
	e.Panic()
	tap.Say("1")
	if reason := c.wantClose(websocket.CloseTryAgainLater); strings.Contains(reason, "secret") {
		t.Error(reason)
	}
	receive(t, tap.Closed, "the stream is closed")
	until(t, "both are gone", func() bool { return e.transport.Stats().Sockets == 0 })
	if got := log.String(); strings.Count(got, "panic=secret") != 2 || !strings.Contains(got, "sockettest/api.go") {
		t.Error(got)
	}
}

func TestOpeningAndAnsweringAreBounded(t *testing.T) {
	t.Parallel()
	e := open(t, func(c *socket.Config) { c.CallTimeout = 50 * time.Millisecond })
	c := e.enter(t)
	c.send(values)
	tap := e.tap(t)
	c.send(subscribe("slow", "subscription{slowStream}"))
	c.wantError("slow", fault.Unavailable)
	c.send(subscribe("wait", "mutation{wait}"))
	c.wantError("wait", fault.Unavailable)
	tap.Say("1") // its time was bounded too, until it was open
	c.want(next("1", `{"values":1}`))
	c.quiet()
}

func TestACompleteEndsWhatRuns(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	c.send(subscribe("1", "mutation{wait}"), subscribe("2", "subscription{slowStream}"))
	receive(t, e.Waiting, "it waits")
	c.send(complete("1"), complete("2"), subscribe("1", "{me}"))
	c.want(next("1", `{"me":"Person 7"}`), complete("1"))
	until(t, "both have ended", func() bool { return e.transport.Stats().Calls == 0 })
	c.quiet()
}

func TestALostConnectionEndsWhatItBegan(t *testing.T) {
	t.Parallel()
	e := open(t)
	c := e.enter(t)
	for i := range 50 {
		c.send(subscribe(fmt.Sprint(i), "subscription{values}"))
	}
	c.send(subscribe("wait", "mutation{wait}"))
	receive(t, e.Waiting, "it waits")
	if err := c.ws.NetConn().Close(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		receive(t, e.tap(t).Closed, "the stream is closed")
	}
	until(t, "it is gone", func() bool { s := e.transport.Stats(); return s.Sockets == 0 && s.Calls == 0 && s.Subscriptions == 0 })
}
