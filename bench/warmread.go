package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tidemark/graph"
	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/redis"
)

const (
	iconFields = `count capped label acknowledgedAt senders { latestAt user { id displayName } }`
	iconQuery  = `{ newlyUnread { ` + iconFields + ` asOf } }`
	// sameQuery leaves out up to where all is known: the store may know of more that was nothing.
	sameQuery = `{ newlyUnread { ` + iconFields + ` } }`

	// iconGlances is how many times each number is asked for in one round.
	iconGlances = 101

	// makeIcon has so many write to one person, the first of them last.
	makeIcon = `
		INSERT INTO arrival (recipient, sender, latest)
		SELECT $1, n, (extract(epoch FROM now()) * 1000000)::bigint - n
		FROM generate_series(1, $2::bigint) AS n`
	// makeOthers has the table be of many people, as it is: with a few, Postgres reads all of it.
	makeOthers = `
		INSERT INTO arrival (recipient, sender, latest)
		SELECT $1 + n % $2::bigint, n / $2::bigint, (extract(epoch FROM now()) * 1000000)::bigint - n
		FROM generate_series(0, $3::bigint - 1) AS n`
	removeIcons = "DELETE FROM arrival WHERE recipient >= $1"
)

// newIcons is the API in this process, for newly unread alone.
func newIcons(store *postgres.Store, read *newlyunread.NewlyUnread) (api, error) {
	people, err := person.NewDirectory(store)
	if err != nil {
		return api{}, err
	}
	return api{graph.NewHandler(graph.Config{Resolver: &graph.Resolver{Arrivals: read, People: people}})}, nil
}

// The ways to read a number by turns.
const (
	zcard = iota
	warmGet
	warmQuery
	storeQuery
	iconWays
)

// icons is what one round found out, by how many wrote.
type icons []icon

type icon struct {
	took                        []time.Duration // by way
	commands, trips, statements float64         // for a warm answer
}

// warmRead compares an icon from its copy, through GraphQL, with the least that Redis can be asked, and with the same from
// Postgres.
func warmRead(ctx context.Context, l *lab) (table []row, err error) {
	users := make([]id.User, len(l.senders))
	for i, senders := range l.senders {
		users[i] = firstReceiver + id.User(i)
		if _, err := l.admin.Exec(ctx, makeIcon, users[i], senders); err != nil {
			return nil, err
		}
	}
	if _, err := l.admin.Exec(ctx, makeOthers, firstOther, others, l.written/eachWrote); err != nil {
		return nil, err
	}
	defer func() {
		_, removed := l.admin.Exec(context.WithoutCancel(ctx), removeIcons, firstReceiver)
		err = errors.Join(err, removed)
	}()
	if _, err := l.admin.Exec(ctx, "VACUUM (ANALYZE, INDEX_CLEANUP ON) arrival, user_activity, lease"); err != nil {
		return nil, err
	}
	c, err := l.openCopies(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	seen := new(recorder)
	store, err := postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: 1, Tracer: seen})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	silent := slog.New(slog.DiscardHandler)
	read := newlyunread.New(newlyunread.Config{Store: store, Projection: redis.NewNewlyUnread(c.reading), Logger: silent})
	warm, err := newIcons(store, read)
	if err != nil {
		return nil, err
	}
	stored, err := newIcons(store, newlyunread.New(newlyunread.Config{Store: store, Logger: silent}))
	if err != nil {
		return nil, err
	}

	found, err := measure(ctx, l, func(ctx context.Context) (all icons, err error) {
		// Copies are trusted for some seconds after the worker has ended, which is out of the way then.
		err = working(ctx, c.kept(), func(ctx context.Context, _ *newlyunread.Worker) error { return c.look(ctx, users) })
		if err != nil {
			return nil, err
		}
		for _, user := range users {
			one, err := c.icon(ctx, user, read, warm, stored, seen)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	for i, senders := range l.senders {
		what := short(senders) + " wrote: "
		in := func(way int) func(icons) float64 {
			return func(all icons) float64 { return 1000 * all[i].took[way].Seconds() }
		}
		over := func(one, other int) func(icons) float64 {
			return func(all icons) float64 { return all[i].took[one].Seconds() / all[i].took[other].Seconds() }
		}
		table = append(table,
			found.row(what+"Redis commands, warm", "%.0f", atMost(2), func(all icons) float64 { return all[i].commands }),
			found.row(what+"round trips to Redis, warm", "%.0f", atMost(1), func(all icons) float64 { return all[i].trips }),
			found.row(what+"SQL statements, warm, names known", "%.0f", atMost(0), func(all icons) float64 { return all[i].statements }),
			found.row(what+"median time, ZCARD", "%.3f ms", bound{}, in(zcard)).onTime(),
			found.row(what+"median time, warm, GraphQL", "%.3f ms", bound{}, in(warmQuery)).onTime(),
			found.row(what+"median time, warm, without GraphQL / ZCARD", "%.1f", bound{}, over(warmGet, zcard)).onTime(),
			found.row(what+"median time, warm, GraphQL / ZCARD", "%.1f", bound{}, over(warmQuery, zcard)).onTime(),
			found.row(what+"median time, from Postgres / warm, both GraphQL", "%.1f", bound{}, over(storeQuery, warmQuery)).onTime(),
		)
	}
	return table, nil
}

// icon reads one person's number in all ways.
func (c *copies) icon(ctx context.Context, user id.User, read *newlyunread.NewlyUnread, warm, stored api, seen *recorder) (one icon, err error) {
	// Names are known after the first, and connections have settled.
	for range settling {
		told, first := warm.ask(ctx, user, sameQuery)
		same, second := stored.ask(ctx, user, sameQuery)
		if err := errors.Join(first, second); err != nil {
			return one, err
		}
		if !bytes.Equal(told, same) {
			return one, fmt.Errorf("the copy and the store do not tell the same:\n%.400s\n%.400s", told, same)
		}
	}
	sent, before := len(seen.sent), read.Stats().Warm
	if one.commands, one.trips, err = c.asked(ctx); err != nil {
		return one, err
	}
	for range counted {
		if _, err := warm.ask(ctx, user, iconQuery); err != nil {
			return one, err
		}
	}
	commands, trips, err := c.asked(ctx)
	if err != nil {
		return one, err
	}
	one.commands = (commands - one.commands) / counted
	one.trips = (trips - one.trips - asking) / counted
	one.statements = float64(len(seen.sent)-sent) / counted
	if now := read.Stats().Warm; now != before+counted {
		return one, fmt.Errorf("%d of %d reads were not answered from the copy", before+counted-now, counted)
	}
	one.took, err = byTurns(iconWays, iconGlances, func(way, _ int) error {
		switch way {
		case zcard:
			return c.raw.ZCard(ctx, copyKey(user)).Err()
		case warmGet:
			_, err := read.Get(ctx, user, newlyunread.DefaultFirst)
			return err
		case warmQuery:
			_, err := warm.ask(ctx, user, iconQuery)
			return err
		default:
			_, err := stored.ask(ctx, user, iconQuery)
			return err
		}
	})
	return one, err
}

// asking is how many round trips asked itself takes, one for each number.
const asking = 3

// asked returns how many commands of reads, and how many round trips of whatever kind, the server has counted.
func (c *copies) asked(ctx context.Context) (commands, trips float64, err error) {
	n, err := c.calls(ctx, "get", "zrevrange")
	if err != nil {
		return 0, 0, err
	}
	m, err := c.tells(ctx, "stats", "total_reads_processed:")
	return float64(n), float64(m), err
}

// copyKey is where a person's copy is.
func copyKey(user id.User) string { return "newly_unread:{" + user.String() + "}" }
