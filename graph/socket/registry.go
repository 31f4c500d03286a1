package socket

import (
	"context"
	"sync"
	"time"

	"tidemark/internal/fault"
	"tidemark/internal/id"
)

// drainPace is the most that lies between the ends of two streams, however long a drain may take.
const drainPace = 10 * time.Millisecond

// Stream is what stays open for a client: a websocket, or a response that does not end.
type Stream interface {
	// Drain ends it, when what is to be answered has been, or ctx has ended.
	Drain(ctx context.Context)
	// Abort ends it at once. Like Drain it may be called at any time and more than once, and also after the end.
	Abort()
}

// registry knows the streams that are open, and whose they are.
type registry struct {
	maxPerPerson int

	mu       sync.Mutex
	draining bool
	empty    chan struct{} // closed when the last stream has left; made by drain
	streams  map[Stream]struct{}
	persons  map[id.User]int
}

func newRegistry(maxPerPerson int) *registry {
	return &registry{maxPerPerson: maxPerPerson, streams: make(map[Stream]struct{}), persons: make(map[id.User]int)}
}

func (r *registry) isDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// enter lets a stream in, which is to leave when it and all that it began have ended. It is no longer let in once the
// streams are drained.
func (r *registry) enter(s Stream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return false
	}
	r.streams[s] = struct{}{}
	return true
}

func (r *registry) leave(s Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.streams, s)
	if r.draining && len(r.streams) == 0 {
		close(r.empty)
	}
}

// admit counts one stream more of a person.
func (r *registry) admit(user id.User) *fault.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.persons[user] >= r.maxPerPerson {
		return fault.New(fault.TooManySubscriptions, "you have %d connections open, which is the most that are allowed", r.maxPerPerson)
	}
	r.persons[user]++
	return nil
}

func (r *registry) dismiss(user id.User) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.persons[user]--; r.persons[user] <= 0 {
		delete(r.persons, user)
	}
}

// drain lets nobody in any more and ends everybody, one by one. At ctx's end it ends the rest at once. It returns when
// all have left.
func (r *registry) drain(ctx context.Context, over time.Duration) {
	streams := r.shut()
	if len(streams) > 0 {
		var ending sync.WaitGroup
		defer ending.Wait()
		pace := min(over/time.Duration(len(streams)), drainPace)
		start := time.Now()
		timer := time.NewTimer(0)
		defer timer.Stop()
		for i, s := range streams {
			timer.Reset(time.Until(start.Add(time.Duration(i) * pace)))
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				break
			}
			ending.Go(func() { s.Drain(ctx) })
		}
	}
	select {
	case <-r.empty:
		return
	case <-ctx.Done():
	}
	for _, s := range r.shut() {
		s.Abort()
	}
	<-r.empty
}

// shut lets nobody in any more, and returns who is in.
func (r *registry) shut() []Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.draining {
		r.draining = true
		r.empty = make(chan struct{})
		if len(r.streams) == 0 {
			close(r.empty)
		}
	}
	streams := make([]Stream, 0, len(r.streams))
	for s := range r.streams {
		streams = append(streams, s)
	}
	return streams
}
