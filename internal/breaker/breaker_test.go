package breaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tidemark/internal/breaker"
)

func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New(time.Second)
		if !b.Allow() || b.Worked() {
			t.Error("what has not failed works")
		}
		if !b.Failed() || b.Failed() {
			t.Error("it is news once that a part has failed")
		}
		if b.Allow() {
			t.Error("it is tried right after it failed")
		}
		time.Sleep(time.Second)
		if !b.Allow() || b.Allow() {
			t.Error("one caller tries for all")
		}
		if !b.Worked() || b.Worked() || !b.Allow() {
			t.Error("it is news once that it works again")
		}
	})
}
