package newlyunread

import (
	"sync"

	"tidemark/internal/id"
)

// maxLasting bounds the people whose copies are remembered. Those past it are dropped by workers alone.
const maxLasting = 10_000

// lasting are people whose copies should have gone when they acknowledged, and may have stayed because the projection was
// away. This process reads none of them before it has dropped them.
type lasting struct {
	mu    sync.Mutex
	times uint64
	users map[id.User]uint64 // which time it was that they were added last
}

func (l *lasting) add(user id.User) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == nil {
		l.users = make(map[id.User]uint64)
	}
	if _, is := l.users[user]; is || len(l.users) < maxLasting {
		l.times++
		l.users[user] = l.times
	}
}

// when returns which time it was that a person was added, and 0 for whom it was none.
func (l *lasting) when(user id.User) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.users[user]
}

// remove removes a person who has not been added again.
func (l *lasting) remove(user id.User, when uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[user] == when {
		delete(l.users, user)
	}
}
