package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"tidemark/internal/embedded/engine"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/redis"
)

const (
	// afterwards is longer than anything here takes: nothing is written because a copy has a message that is too old.
	afterwards = time.Hour

	fillEvents = `
		INSERT INTO arrival_event (partition, recipient, sender)
		SELECT arrival_partition(e.recipient), e.recipient, e.sender
		FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS e (recipient, sender, n)
		ORDER BY e.n`
	// wroteBefore is what arrived before anybody looked.
	wroteBefore = `
		INSERT INTO arrival (recipient, sender, latest)
		SELECT e.recipient, e.sender, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
		FROM unnest($1::bigint[], $2::bigint[]) AS e (recipient, sender)`
	emptyArrivals = "TRUNCATE outbox, arrival_event, arrival, user_activity"
)

// bags is which of the two ways to write less are in use.
type bags struct {
	label             string
	coalesced, checks bool
}

func allBags() []bags {
	return []bags{
		{"neither", false, false},
		{"coalescing alone", true, false},
		{"check alone", false, true},
		{"both", true, true},
	}
}

const (
	neither = 0
	both    = 3
)

// blows is what became of all events in one way.
type blows struct {
	events, changed, batches int           // events; pairs that came in and acknowledgments; batches
	writes                   int64         // that a worker sent to the primary
	unsure                   int64         // batches of which the replica could not tell
	writing                  time.Duration // that the worker waited for the primary to apply and mark
	inRedis                  time.Duration // the same, and for checks at the replica
	took                     time.Duration // from the events to the copies, with Postgres in it
}

func (b blows) perEvent() float64 { return float64(b.writes) / float64(b.events) }

// share is the writes as a share of what they may be.
func (b blows) share() float64 {
	return float64(b.writes) / (1.05*float64(b.changed) + 2*float64(b.batches))
}

func (b blows) redundant() float64 { return 100 * (1 - float64(b.changed)/float64(b.events)) }

// punches is what one round found out, by way.
type punches [4]blows

// punching counts what a worker writes to Redis for events most of which change nothing.
func punching(ctx context.Context, l *lab) (table []row, err error) {
	defer func() {
		_, emptied := l.admin.Exec(context.WithoutCancel(ctx), emptyArrivals)
		err = errors.Join(err, emptied)
	}()
	replica := engine.Redis{
		Installation: l.redis.Installation, Account: l.redis.Account, Dir: l.dir + "/replica", Log: l.dir + "/replica.log",
	}
	process, err := replica.Start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	if err := l.follow(ctx, replica.URL()); err != nil {
		return nil, err
	}
	p := l.madeUp()
	if l.trace != "" {
		if p, err = readPlot(l.trace); err != nil {
			return nil, err
		}
	}
	round := func(ctx context.Context) (found punches, err error) {
		for i, way := range allBags() {
			if found[i], err = l.undisturbed(ctx, p, way, replica.URL()); err != nil {
				return found, fmt.Errorf("%s: %w", way.label, err)
			}
		}
		return found, nil
	}
	found, err := measure(ctx, l, round)
	if err != nil {
		return nil, err
	}
	add := func(r row) { table = append(table, r) }
	fewest, faster := atLeast(9.5), atLeast(5)
	if p.of != madeUpEvents { // as redundant as it was
		fewest, faster = bound{}, bound{}
	}
	add(found.row(p.of+": events", "%.0f", bound{}, func(p punches) float64 { return float64(p[both].events) }))
	add(found.row(p.of+": events that change nothing", "%.1f %%", bound{}, func(p punches) float64 { return p[both].redundant() }))
	add(found.row(p.of+": events in a batch", "%.0f", bound{}, func(p punches) float64 {
		return float64(p[both].events) / float64(p[both].batches)
	}).onTime())
	for i, way := range allBags() {
		add(found.row(p.of+": writes for an event, "+way.label, "%.3f", bound{}, func(p punches) float64 { return p[i].perEvent() }).onTime())
	}
	add(found.row(p.of+": events / writes, both", "%.1f", fewest, func(p punches) float64 { return 1 / p[both].perEvent() }).onTime())
	add(found.row(p.of+": writes / (1.05 for each change and 2 for each batch), both", "%.2f", atMost(1), func(p punches) float64 {
		return p[both].share()
	}).onTime())
	add(found.row(p.of+": batches of which the replica could not tell, both", "%.0f", bound{}, func(p punches) float64 {
		return float64(p[both].unsure)
	}).onTime())
	for i, way := range allBags() {
		if i != neither {
			add(found.row(p.of+": time in Redis, neither / "+way.label, "%.1f", map[bool]bound{true: faster}[i == both], func(p punches) float64 {
				return p[neither].inRedis.Seconds() / p[i].inRedis.Seconds()
			}).onTime())
		}
	}
	add(found.row(p.of+": time to write alone, neither / both", "%.1f", bound{}, func(p punches) float64 {
		return p[neither].writing.Seconds() / p[both].writing.Seconds()
	}).onTime())
	add(found.row(p.of+": time with Postgres, neither / both", "%.1f", bound{}, func(p punches) float64 {
		return p[neither].took.Seconds() / p[both].took.Seconds()
	}).onTime())
	return table, nil
}

// follow has a server replicate the lab's Redis.
func (l *lab) follow(ctx context.Context, replica string) (err error) {
	options, err := goredis.ParseURL(replica)
	if err != nil {
		return err
	}
	raw := goredis.NewClient(options)
	defer func() { err = errors.Join(err, raw.Close()) }()
	if err := raw.Do(ctx, "REPLICAOF", "127.0.0.1", l.redis.Port).Err(); err != nil {
		return err
	}
	for {
		info, err := raw.Info(ctx, "replication").Result()
		if err != nil || strings.Contains(info, "master_link_status:up") {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollOutbox):
		}
	}
}

// errDisturbed says that Redis did not answer in time, because the machine did something else: then copies are given up, as
// they have to be, and what was written says nothing.
var errDisturbed = errors.New("disturbed")

// undisturbed plays all events in one way, again where something came between.
func (l *lab) undisturbed(ctx context.Context, p plot, way bags, replica string) (b blows, err error) {
	const tries = 10
	for range tries {
		if b, err = l.punch(ctx, p, way, replica); !errors.Is(err, errDisturbed) {
			break
		}
	}
	return b, err
}

// punch plays all events in one way.
func (l *lab) punch(ctx context.Context, p plot, way bags, replica string) (b blows, err error) {
	if _, err := l.admin.Exec(ctx, emptyArrivals); err != nil {
		return b, err
	}
	if _, err := l.admin.Exec(ctx, wroteBefore, recipientsOf(p.before), sendersOf(p.before)); err != nil {
		return b, err
	}
	if _, err := l.admin.Exec(ctx, "VACUUM (ANALYZE) arrival, arrival_event, user_activity, lease, worker"); err != nil {
		return b, err
	}
	c, err := l.openCopies(ctx)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	second, err := redis.Open(replica)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, second.Close()) }()

	config, watch := c.kept(), new(watch)
	// The server learns the script before anything is counted.
	if err := config.Projection.Apply(ctx, []newlyunread.Change{{User: 1}}); err != nil {
		return b, err
	}
	watched := newWatchedQueue(c.store, watch)
	for _, e := range p.before {
		watched.there[e] = true
	}
	config.Queue, config.Announcer = watched, watch
	config.Projection = watchedCopies{config.Projection, watch}
	config.Recency, config.Uncoalesced = afterwards, !way.coalesced
	if way.checks {
		config.Check = watchedCheck{redis.NewNewlyUnreadCheck(c.keeping, second), watch}
	}
	err = working(ctx, config, func(ctx context.Context, worker *newlyunread.Worker) error {
		if err := c.look(ctx, p.readers); err != nil {
			return err
		}
		before, err := c.written(ctx, watch)
		if err != nil {
			return err
		}
		wrote, asked := watch.wrote.Load(), watch.asked.Load()
		for _, part := range p.parts {
			took, err := l.playPart(ctx, c, watched, worker, part)
			if err != nil {
				return err
			}
			b.took += took
			b.events += len(part.events) + len(part.acknowledging)
		}
		b.writing = time.Duration(watch.wrote.Load() - wrote)
		b.inRedis = b.writing + time.Duration(watch.asked.Load()-asked)
		stats := worker.Stats()
		b.changed, b.batches, b.unsure = watched.changed, int(watch.stored.Load()), stats.Unsure
		after, err := c.written(ctx, watch)
		b.writes = after - before
		if err == nil && stats.Parked+stats.Generations > 0 {
			err = fmt.Errorf("%w: %d rows were set aside, and copies became old %d times", errDisturbed, stats.Parked, stats.Generations)
		}
		return errors.Join(err, c.agree(ctx, p.readers))
	})
	return b, err
}

// written returns what the worker has written to the primary: scripts that apply and mark, and tokens. Readers' scripts are
// not in it.
func (c *copies) written(ctx context.Context, watch *watch) (int64, error) {
	scripts, err := c.calls(ctx, "evalsha")
	if err != nil {
		return 0, err
	}
	return scripts - c.read.Stats().Cold + watch.tokens.Load(), nil
}

// playPart has some people acknowledge and look again, and others written to, and waits until all of it is in the copies.
// The worker comes to know of it at once.
func (l *lab) playPart(ctx context.Context, c *copies, queue *watchedQueue, worker *newlyunread.Worker, p part) (time.Duration, error) {
	queue.gate.Lock()
	err := func() error {
		for _, user := range p.acknowledging {
			if _, err := c.read.Acknowledge(ctx, user, nil, newlyunread.DefaultFirst); err != nil {
				return err
			}
			queue.acknowledged(user)
		}
		_, err := l.admin.Exec(ctx, fillEvents, recipientsOf(p.events), sendersOf(p.events))
		return err
	}()
	begin := time.Now()
	queue.gate.Unlock()
	if err != nil {
		return 0, err
	}
	worker.Wake()
	if err := l.awaitDrained(ctx); err != nil {
		return 0, err
	}
	err = queue.watch.awaitTold(ctx)
	return time.Since(begin), err
}

// agree checks that copies say what the store does.
func (c *copies) agree(ctx context.Context, readers []id.User) error {
	before := c.read.Stats().Warm
	names := func(s newlyunread.Shown) (senders []id.User) {
		for _, sender := range s.Senders {
			senders = append(senders, sender.UserID)
		}
		slices.Sort(senders)
		return senders
	}
	const some = 200
	for n := 0; n < len(readers); n += max(1, len(readers)/some) {
		warm, err := c.read.Get(ctx, readers[n], newlyunread.MaxKept)
		if err != nil {
			return err
		}
		stored, err := c.fromStore.Get(ctx, readers[n], newlyunread.MaxKept)
		if err != nil {
			return err
		}
		if warm.Number != stored.Number || !warm.Number.Capped && !slices.Equal(names(warm), names(stored)) {
			return fmt.Errorf("%s is shown %v from the copy and %v from the store", readers[n], names(warm), names(stored))
		}
		before++
	}
	if now := c.read.Stats().Warm; now != before {
		return fmt.Errorf("%w: %d of the copies are cold", errDisturbed, before-now)
	}
	return nil
}
