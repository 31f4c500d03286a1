package redis

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/live"
)

// TestSubscriptionsTellTheTruth draws histories of callers, of a link that comes and goes, and of a Redis that is
// slow to read commands and whose answers are slow to come. Whoever is told to be subscribed must be, and stay so
// whatever commands are on their way; and once all has arrived, nobody waits and Redis has what is wanted.
func TestSubscriptionsTellTheTruth(t *testing.T) {
	type command struct {
		subscribe bool
		topic     live.Topic
	}
	rapid.Check(t, func(r *rapid.T) {
		var (
			subs     = newSubscriptions()
			linked   bool
			written  []command    // and not read by Redis
			answers  []live.Topic // and not read by us
			at       = map[live.Topic]bool{}
			wanted   = map[live.Topic]bool{}
			waiters  = map[*waiter][]live.Topic{}
			refused  = map[*waiter]bool{} // a topic of theirs was dropped, or the link was lost
			topics   = []live.Topic{"a", "b", "c"}
			some     = rapid.SliceOfN(rapid.SampledFrom(topics), 1, 4)
			redisOne = func() {
				c := written[0]
				written = written[1:]
				at[c.topic] = c.subscribe
				answers = append(answers, c.topic)
			}
			answerOne = func() {
				topic := answers[0]
				answers = answers[1:]
				if err := subs.answered(topic); err != nil {
					r.Fatal(err)
				}
			}
			writeSome = func(limit int) int {
				subscribe, unsubscribe := subs.next(limit)
				for _, topic := range subscribe {
					written = append(written, command{true, live.Topic(topic)})
				}
				for _, topic := range unsubscribe {
					written = append(written, command{false, live.Topic(topic)})
				}
				return len(subscribe) + len(unsubscribe)
			}
			settled = func() {
				for w, of := range waiters {
					select {
					case err := <-w.done:
						delete(waiters, w)
						if refused[w] == (err == nil) {
							r.Fatalf("has to be refused: %t, and the waiter was told %v", refused[w], err)
						}
						for _, topic := range of {
							if err == nil && !at[topic] {
								r.Fatalf("told to be subscribed to %s and is not", topic)
							}
							for _, c := range written {
								if err == nil && c.topic == topic && !c.subscribe {
									r.Fatalf("told to be subscribed to %s with an UNSUBSCRIBE on its way", topic)
								}
							}
						}
					default:
					}
				}
			}
		)
		r.Repeat(map[string]func(*rapid.T){
			"want": func(r *rapid.T) {
				of := some.Draw(r, "topics")
				w, err := subs.want(of...)
				if err != nil && (subs.isUp() || !errors.Is(err, errLinkDown)) {
					r.Fatal(err)
				}
				if err == nil {
					waiters[w] = of
				}
				for _, topic := range of {
					wanted[topic] = true
				}
			},
			"drop": func(r *rapid.T) {
				of := some.Draw(r, "topics")
				for w, waited := range waiters {
					if len(w.done) == 0 && slices.ContainsFunc(waited, func(topic live.Topic) bool {
						return slices.Contains(of, topic)
					}) {
						refused[w] = true
					}
				}
				subs.drop(of...)
				for _, topic := range of {
					wanted[topic] = false
				}
			},
			"begin": func(r *rapid.T) {
				if linked {
					r.Skip("there is a link")
				}
				linked = true
				subs.begin()
			},
			"end": func(r *rapid.T) {
				if !linked {
					r.Skip("there is no link")
				}
				linked, written, answers = false, nil, nil
				for w := range waiters {
					refused[w] = refused[w] || len(w.done) == 0
				}
				clear(at)
				subs.end()
				settled()
				if len(waiters) > 0 {
					r.Fatalf("%d wait for a link that is down", len(waiters))
				}
			},
			"write": func(r *rapid.T) { writeSome(rapid.IntRange(1, 3).Draw(r, "limit")) },
			"redis": func(r *rapid.T) {
				if len(written) == 0 {
					r.Skip("nothing is written")
				}
				redisOne()
			},
			"answer": func(r *rapid.T) {
				if len(answers) == 0 {
					r.Skip("there is no answer")
				}
				answerOne()
			},
			"resume": func(r *rapid.T) {
				wasUp := subs.isUp()
				if !subs.resume() || wasUp {
					return
				}
				for topic, is := range wanted {
					if is && !at[topic] {
						r.Fatalf("resumed without %s", topic)
					}
				}
			},
			"": func(*rapid.T) { settled() },
		})

		if !linked {
			subs.begin()
		}
		for writeSome(100) > 0 {
		}
		for len(written) > 0 {
			redisOne()
		}
		for len(answers) > 0 {
			answerOne()
		}
		settled()
		if !subs.resume() || len(waiters) > 0 {
			r.Errorf("all has arrived, and %d wait", len(waiters))
		}
		for _, topic := range topics {
			if at[topic] != wanted[topic] || subs.wants(topic) != wanted[topic] {
				r.Errorf("%s: wanted %t, subscribed %t", topic, wanted[topic], at[topic])
			}
			if subs.topics[topic] != nil && !wanted[topic] {
				r.Errorf("%s is not forgotten", topic)
			}
		}
		if err := subs.answered("a"); err == nil {
			r.Error("an answer to nothing was taken for one")
		}
	})
}
