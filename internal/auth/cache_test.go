package auth

import (
	"encoding/binary"
	"testing"
	"time"

	"tidemark/internal/person"
)

func TestCacheIsBounded(t *testing.T) {
	var c cache
	nth := func(i uint64) (h tokenHash) {
		binary.BigEndian.PutUint64(h[:], i)
		return h
	}
	const last = 3*generation + generation/2
	for i := uint64(1); i <= last; i++ {
		c.put(nth(i), person.Viewer{ID: 7}, time.Now().Add(time.Hour))
	}
	if n := len(c.young) + len(c.old); n > 2*generation {
		t.Errorf("holds %d tokens, want at most %d", n, 2*generation)
	}
	for i := uint64(last - generation + 1); i <= last; i++ {
		if _, ok := c.get(nth(i)); !ok {
			t.Fatalf("forgot a token that was among the last %d", generation)
		}
	}
	if _, ok := c.get(nth(1)); ok {
		t.Error("the first of so many is still remembered")
	}
}
