package redis

import (
	"fmt"
	"sync"

	"tidemark/internal/live"
)

// subscriptions is what is wanted, what the present link was asked for, and what it has confirmed.
//
// Redis answers the commands of a connection in their order, for each topic named in them. So a topic is subscribed
// to where it is wanted, the last command about it was SUBSCRIBE, and no command about it is unanswered, however
// often it was wanted and not wanted before.
type subscriptions struct {
	// wake holds a value where the queue may have something. The one who writes commands takes it.
	wake chan struct{}

	mu         sync.Mutex
	topics     map[live.Topic]*subscription
	linked     bool            // there is a link to write commands to
	up         bool            // and it is proven to work
	queue      []*subscription // what is wanted has changed since the last command
	unanswered int             // the sum over all topics
	drops      uint64          // calls of drop
}

// subscription is one topic.
type subscription struct {
	topic   live.Topic
	wanted  bool
	dropped uint64 // the last call of drop, by number

	// On the present link.
	queued     bool
	asked      bool // the last command was SUBSCRIBE
	unanswered int  // commands
	waiting    []*waiter
}

// waiter waits for some topics to be subscribed to.
type waiter struct {
	subs  []*subscription
	left  int        // those of them that are not confirmed
	drops uint64     // as they were when it began to wait
	done  chan error // of 1: the first to come is the result
}

func newSubscriptions() *subscriptions {
	return &subscriptions{wake: make(chan struct{}, 1), topics: map[live.Topic]*subscription{}}
}

// want adds topics to those that are wanted. Where the link is down it does so too and returns errLinkDown. A waiter
// whose caller has gone stays until the topics are confirmed or the link is down: it is next to nothing.
func (s *subscriptions) want(topics ...live.Topic) (*waiter, error) {
	w := &waiter{subs: make([]*subscription, 0, len(topics)), done: make(chan error, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.drops = s.drops
	for _, topic := range topics {
		sub := s.topics[topic]
		if sub == nil {
			sub = &subscription{topic: topic}
			s.topics[topic] = sub
		}
		sub.wanted = true
		s.enqueueLocked(sub)
		w.subs = append(w.subs, sub)
		if s.up && !sub.confirmed() {
			w.left++
			sub.waiting = append(sub.waiting, w)
		}
	}
	if !s.up {
		return nil, errLinkDown
	}
	if w.left == 0 {
		w.finish(nil)
	}
	return w, nil
}

// drop takes topics from those that are wanted.
func (s *subscriptions) drop(topics ...live.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	for _, topic := range topics {
		if sub := s.topics[topic]; sub != nil {
			sub.wanted, sub.dropped = false, s.drops
			sub.finish(errUnsubscribed)
			s.enqueueLocked(sub)
			s.forgetLocked(sub)
		}
	}
}

// wants reports whether a topic is wanted.
func (s *subscriptions) wants(topic live.Topic) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.topics[topic]
	return sub != nil && sub.wanted
}

func (s *subscriptions) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

// begin is a new link, which was asked for nothing yet.
func (s *subscriptions) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked = true
	for _, sub := range s.topics {
		s.enqueueLocked(sub)
	}
}

// next takes from the queue what the next commands are about, up to limit topics. They count as written. It returns
// nothing where there is nothing to do.
func (s *subscriptions) next(limit int) (subscribe, unsubscribe []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && len(subscribe)+len(unsubscribe) < limit {
		sub := s.queue[0]
		s.queue = s.queue[1:]
		sub.queued = false
		if sub.wanted == sub.asked { // it was changed back meanwhile
			s.forgetLocked(sub)
			continue
		}
		if sub.wanted {
			subscribe = append(subscribe, string(sub.topic))
		} else {
			unsubscribe = append(unsubscribe, string(sub.topic))
		}
		sub.asked = sub.wanted
		sub.unanswered++
		s.unanswered++
	}
	return subscribe, unsubscribe
}

// answered is a confirmation of a command about topic.
func (s *subscriptions) answered(topic live.Topic) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.topics[topic]
	if sub == nil || sub.unanswered == 0 {
		return fmt.Errorf("redis changed the subscription to %q unasked", topic)
	}
	sub.unanswered--
	s.unanswered--
	if sub.confirmed() {
		for _, w := range sub.waiting {
			w.confirmed()
		}
		sub.waiting = nil
	}
	s.forgetLocked(sub)
	return nil
}

// resume marks the link up, where all that is wanted is confirmed.
func (s *subscriptions) resume() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = s.up || s.linked && len(s.queue) == 0 && s.unanswered == 0
	return s.up
}

// end is the end of a link and of all that was confirmed on it.
func (s *subscriptions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linked, s.up, s.queue, s.unanswered = false, false, nil, 0
	for _, sub := range s.topics {
		sub.queued, sub.asked, sub.unanswered = false, false, 0
		sub.finish(errLinkDown)
		s.forgetLocked(sub)
	}
}

func (s *subscriptions) enqueueLocked(sub *subscription) {
	if !s.linked || sub.queued || sub.wanted == sub.asked {
		return
	}
	sub.queued = true
	s.queue = append(s.queue, sub)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// forgetLocked gives up what is neither wanted nor known to the link.
func (s *subscriptions) forgetLocked(sub *subscription) {
	if !sub.wanted && !sub.asked && !sub.queued && sub.unanswered == 0 {
		delete(s.topics, sub.topic)
	}
}

func (s *subscription) confirmed() bool { return s.wanted && s.asked && s.unanswered == 0 }

// finish ends the waiting of all.
func (s *subscription) finish(err error) {
	for _, w := range s.waiting {
		w.finish(err)
	}
	s.waiting = nil
}

// confirmed is one topic less to wait for. The others may have been dropped since they were confirmed.
func (w *waiter) confirmed() {
	if w.left--; w.left > 0 {
		return
	}
	for _, sub := range w.subs {
		if sub.dropped > w.drops {
			w.finish(errUnsubscribed)
			return
		}
	}
	w.finish(nil)
}

func (w *waiter) finish(err error) {
	select {
	case w.done <- err:
	default:
	}
}
