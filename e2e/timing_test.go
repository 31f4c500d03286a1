package e2e_test

import (
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for something that is sure to come.
const patience = 30 * time.Second

// eventually waits until another process has made something true. Where it does not, the test fails and goes on.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within(t, patience, what, holds)
}

// within is eventually for what must be true soon.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(limit)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if now := <-ticker.C; now.After(end) {
			t.Errorf("not within %v: %s", limit, what)
			return
		}
	}
}

// together makes calls at the same time and waits for all.
func together(calls ...func()) {
	var ready, done sync.WaitGroup
	ready.Add(len(calls))
	for _, call := range calls {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			call()
		})
	}
	done.Wait()
}
