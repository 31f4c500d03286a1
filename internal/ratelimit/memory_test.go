package ratelimit

import (
	"testing"

	"tidemark/internal/id"
)

func TestMemoryIsBounded(t *testing.T) {
	m, limit := NewMemory(), Limit{Rate: 1e-3, Burst: 1}
	last := id.User(3*generation + generation/2)
	for user := id.User(1); user <= last; user++ {
		m.take(user, 1, limit)
	}
	if n := len(m.young) + len(m.old); n > 2*generation {
		t.Errorf("holds %d people, want at most %d", n, 2*generation)
	}
	for user := last - generation + 1; user <= last; user++ {
		if m.take(user, 1, limit) == 0 {
			t.Fatalf("forgot %d, who was among the last %d", user, generation)
		}
	}
	if m.take(1, 1, limit) != 0 {
		t.Error("the first of so many is still remembered")
	}
}

func TestMemoryWhenTheClockGoesBack(t *testing.T) {
	m, limit := NewMemory(), Limit{Rate: 1, Burst: 2}
	m.young[7] = 1 << 60
	wait := m.take(7, 1, limit)
	if wait != limit.Interval() {
		t.Errorf("to wait %v, want %v: as with an empty allowance", wait, limit.Interval())
	}
}
