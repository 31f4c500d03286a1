package ratelimit

import (
	"context"
	"sync"
	"time"

	"tidemark/internal/id"
)

// generation bounds how many people a Memory remembers for certain; it never holds more than twice as many.
const generation = 50_000

var _ Store = (*Memory)(nil)

// Memory is a Store within one process. When too many people come it forgets those whom it has not admitted for
// longest; whoever is forgotten has a whole allowance.
type Memory struct {
	mu sync.Mutex
	// For each person the instant at which their allowance is whole again, in microseconds since 1970. When young
	// holds a generation it becomes old, and what was old goes.
	young, old map[id.User]int64
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{young: make(map[id.User]int64)}
}

// Take is as Store has it. It never fails.
func (m *Memory) Take(_ context.Context, user id.User, cost int, limit Limit) (time.Duration, error) {
	return m.take(user, cost, limit), nil
}

// take is the generic cell rate algorithm, as in internal/redis/ratelimit.lua.
func (m *Memory) take(user id.User, cost int, limit Limit) time.Duration {
	interval := limit.Interval().Microseconds()
	span := interval * int64(limit.Burst)

	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().UnixMicro()
	whole, ok := m.young[user]
	if !ok {
		whole = m.old[user]
	}
	// More than a span ahead it can only be where the clock went back.
	whole = min(max(whole, now), now+span) + interval*int64(cost)
	if wait := whole - now - span; wait > 0 {
		return time.Duration(wait) * time.Microsecond
	}
	if !ok && len(m.young) >= generation {
		m.old, m.young = m.young, make(map[id.User]int64)
	}
	m.young[user] = whole
	return 0
}
