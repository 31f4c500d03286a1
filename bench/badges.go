package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"tidemark/internal/auth"
	"tidemark/internal/delivery"
	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
)

const (
	// badgesQuery asks for what an app shows in its list of channels.
	badgesQuery = `{ badges(first: 500) {
		nodes { version channel { id name } unread { label } mentions { label } }
		total { unread { label } unreadChannels mentions { label } }
	} }`

	// secret signs the tokens with which Tidemark is asked.
	secret = "as good as any other for a benchmark"
)

// lists is what one round found out about lists of few and of all badges: how fast each server answers with them, and
// what they take.
type lists struct {
	few, fewBare, all, allBare     pace
	fewAllocations, allAllocations float64
}

func (r lists) shareOfFew() float64 { return r.few.perSecond() / r.fewBare.perSecond() }
func (r lists) shareOfAll() float64 { return r.all.perSecond() / r.allBare.perSecond() }

// badgeList compares Tidemark, asked over HTTP, with a handler that does nothing but send the same statements and write
// the same bytes.
func badgeList(ctx context.Context, l *lab) (rows []row, err error) {
	dir, err := l.build(ctx, "tidemark", "tidemark/bench/bare")
	if err != nil {
		return nil, err
	}
	tidemark, err := l.serveTidemark(ctx, filepath.Join(dir, "tidemark"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tidemark.stop()) }()
	bare, err := l.serveBare(ctx, filepath.Join(dir, "bare"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()

	for _, reader := range []id.User{fewReader, allReader} {
		if err := sameAnswer(ctx, reader, tidemark, bare); err != nil {
			return nil, err
		}
	}
	found, err := measure(ctx, l, func(ctx context.Context) (r lists, err error) {
		for _, turn := range []struct {
			pace   *pace
			server *server
			reader id.User
		}{
			{&r.few, tidemark, fewReader},
			{&r.fewBare, bare, fewReader},
			{&r.all, tidemark, allReader},
			{&r.allBare, bare, allReader},
		} {
			if *turn.pace, err = l.flood(ctx, turn.server, turn.reader); err != nil {
				return r, err
			}
		}
		if r.fewAllocations, err = l.allocations(ctx, fewReader); err != nil {
			return r, err
		}
		r.allAllocations, err = l.allocations(ctx, allReader)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	return []row{
		found.row("50 badges over HTTP / bare handler: answers a second", "%.2f", bound{}, lists.shareOfFew).onTime(),
		found.row("500 badges over HTTP / bare handler: answers a second", "%.2f", bound{}, lists.shareOfAll).onTime(),
		found.row("50 badges, in this process: allocations", "%.0f", bound{}, func(r lists) float64 { return r.fewAllocations }),
		found.row("500 badges, in this process: allocations", "%.0f", bound{}, func(r lists) float64 { return r.allAllocations }),
	}, nil
}

func (l *lab) serveTidemark(ctx context.Context, program string) (*server, error) {
	return serve(ctx, l.environment(), program, "serve")
}

// environment tells a server where the engines are.
func (l *lab) environment() []string {
	return []string{
		"DATABASE_URL=" + l.url(),
		"REDIS_URL=" + l.redis.URL(),
		"TIDEMARK_JWT_SECRET=" + secret,
		"TIDEMARK_LISTEN=127.0.0.1:0",
		"TIDEMARK_MAX_CONNECTIONS=" + strconv.Itoa(connections),
	}
}

// serveBare hands the bare server the two statements that Tidemark sends for a list. At the first it also asks for what
// it will remember.
func (l *lab) serveBare(ctx context.Context, program string) (*server, error) {
	sent, err := l.record(ctx, func(ctx context.Context, store *postgres.Store) error {
		api := newAPI(store, delivery.DefaultMaxGap)
		_, first := api.ask(ctx, fewReader, badgesQuery)
		_, second := api.ask(ctx, fewReader, badgesQuery)
		return errors.Join(first, second)
	})
	if err != nil {
		return nil, err
	}
	list := sent[len(sent)-2:]
	return serve(ctx, nil, program, "-database", l.poolURL(), "-badges", list[0].sql, "-channels", list[1].sql)
}

// sameAnswer checks that the servers answer with the same bytes.
func sameAnswer(ctx context.Context, reader id.User, servers ...*server) error {
	var first []byte
	for i, s := range servers {
		client, err := s.asking(ctx, reader)
		if err != nil {
			return err
		}
		answer, err := client.ask()
		if err := errors.Join(err, client.conn.Close()); err != nil {
			return err
		}
		if i == 0 {
			first = answer
		}
		if !bytes.Equal(answer, first) {
			return fmt.Errorf("the servers do not answer alike:\n%.400s\n%.400s", first, answer)
		}
	}
	return nil
}

// flood asks a server for one person's badges, from as many connections as there are callers.
func (l *lab) flood(ctx context.Context, s *server, reader id.User) (p pace, err error) {
	var clients [connections]*client
	for i := range clients {
		if clients[i], err = s.asking(ctx, reader); err != nil {
			return p, err
		}
		defer func() { err = errors.Join(err, clients[i].conn.Close()) }()
	}
	return inParallel(ctx, l.window, func(_ context.Context, caller, _ int) error {
		_, err := clients[caller].ask()
		return err
	})
}

// asking returns a client that asks for a person's badges, whom Tidemark knows by the token and the bare server by the
// URL.
func (s *server) asking(ctx context.Context, reader id.User) (*client, error) {
	return s.askingAs(ctx, person.Viewer{ID: reader, Role: person.RoleUser}, badgesQuery)
}

func (s *server) askingAs(ctx context.Context, viewer person.Viewer, query string) (*client, error) {
	token, err := sign(viewer)
	if err != nil {
		return nil, err
	}
	url := "http://" + s.address + "/graphql?user=" + viewer.ID.String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body(query)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	return dial(ctx, s.address, request)
}

// sign returns a token that Tidemark knows the viewer by.
func sign(viewer person.Viewer) (string, error) {
	return auth.Sign(auth.Config{Secret: secret}, viewer, time.Hour)
}

// allocations returns how often memory is allocated for one person's list, from the request to the answer.
func (l *lab) allocations(ctx context.Context, reader id.User) (float64, error) {
	store, err := postgres.Open(ctx, postgres.Config{URL: l.url(), MaxConnections: 1})
	if err != nil {
		return 0, err
	}
	defer store.Close()
	api := newAPI(store, delivery.DefaultMaxGap)
	var before, after runtime.MemStats
	for n := range 2 * counted { // the first half is for what is allocated once
		if n == counted {
			runtime.ReadMemStats(&before)
		}
		if _, err := api.ask(ctx, reader, badgesQuery); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / counted, nil
}
