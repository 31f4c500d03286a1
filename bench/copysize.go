package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tidemark/internal/id"
	"tidemark/internal/newlyunread"
)

const (
	firstOwner id.User = 40_000_000
	// lookOnceIn is how many people there are for each who looks.
	lookOnceIn = 20
	// wroteToOwner is how many wrote to the people of whom some look, at most: from one to so many.
	wroteToOwner = 50

	makeOwners = `
		INSERT INTO arrival (recipient, sender, latest)
		SELECT $1 + p, 500000 + s, (extract(epoch FROM now()) * 1000000)::bigint - s
		FROM generate_series(0, $2::bigint - 1) AS p, generate_series(1, 1 + p / $4::bigint % $3::bigint) AS s`
)

// sizes is what one round found out: bytes that Redis needs.
type sizes struct{ fifty, fiveHundred, all, looking float64 }

// copySize measures the memory of copies.
func copySize(ctx context.Context, l *lab) (table []row, err error) {
	fifty, fiveHundred := firstReceiver, firstReceiver+1
	l.say("making data: %d people who were written to", l.owners)
	for _, made := range []struct {
		sql  string
		args []any
	}{
		{emptyArrivals, nil},
		{makeIcon, []any{fifty, 50}},
		{makeIcon, []any{fiveHundred, 500}},
		{makeOwners, []any{firstOwner, l.owners, wroteToOwner, lookOnceIn}},
		{"VACUUM (ANALYZE) arrival", nil},
	} {
		if _, err := l.admin.Exec(ctx, made.sql, made.args...); err != nil {
			return nil, err
		}
	}
	defer func() {
		_, emptied := l.admin.Exec(context.WithoutCancel(ctx), emptyArrivals)
		err = errors.Join(err, emptied)
	}()
	var looking []id.User
	for n := 0; n < l.owners; n += lookOnceIn {
		looking = append(looking, firstOwner+id.User(n))
	}
	found, err := measure(ctx, l, func(ctx context.Context) (s sizes, err error) { return l.sizes(ctx, fifty, fiveHundred, looking) })
	if err != nil {
		return nil, err
	}
	who := fmt.Sprintf("%s people of whom 5 %% look: ", short(l.owners))
	return []row{
		found.row("50 wrote: bytes of the copy", "%.0f", atMost(1024), func(s sizes) float64 { return s.fifty }),
		found.row("500 wrote: bytes of the copy", "%.0f", atMost(10*1024), func(s sizes) float64 { return s.fiveHundred }),
		found.row(who+"Redis grows by", "%.2f MB", bound{}, func(s sizes) float64 { return s.all / 1e6 }).onTime(),
		found.row(who+"bytes for each who looks", "%.0f", bound{}, func(s sizes) float64 { return s.all / s.looking }).onTime(),
		found.row(who+"bytes for each", "%.0f", bound{}, func(s sizes) float64 { return s.all / float64(l.owners) }).onTime(),
	}, nil
}

func (l *lab) sizes(ctx context.Context, fifty, fiveHundred id.User, looking []id.User) (s sizes, err error) {
	c, err := l.openCopies(ctx)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	err = working(ctx, c.kept(), func(ctx context.Context, _ *newlyunread.Worker) error {
		// The marks are there, and the connections, when the first have looked.
		if err := c.look(ctx, []id.User{fifty, fiveHundred}); err != nil {
			return err
		}
		for user, size := range map[id.User]*float64{fifty: &s.fifty, fiveHundred: &s.fiveHundred} {
			bytes, err := c.raw.MemoryUsage(ctx, copyKey(user), 0).Result()
			if err != nil {
				return err
			}
			*size = float64(bytes)
		}
		before, err := c.used(ctx)
		if err != nil {
			return err
		}
		if err := c.look(ctx, looking); err != nil {
			return err
		}
		after, err := c.used(ctx)
		s.all, s.looking = after-before, float64(len(looking))
		return err
	})
	return s, err
}

// used returns how many bytes Redis uses, those of connections left aside.
func (c *copies) used(ctx context.Context) (bytes float64, err error) {
	info, err := c.raw.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		sign := map[string]float64{"used_memory": 1, "mem_clients_normal": -1, "mem_clients_slaves": -1}[name]
		if sign == 0 {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(value, &n); err != nil {
			return 0, err
		}
		bytes += sign * n
	}
	return bytes, nil
}
