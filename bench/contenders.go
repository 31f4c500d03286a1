package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"tidemark/internal/id"
	"tidemark/internal/person"
)

// contender is a program that serves live updates.
type contender struct {
	program string
	args    []string
	env     []string
}

// contenders builds Tidemark and gqlgen as it comes, and checks that they tell people the same.
func (l *lab) contenders(ctx context.Context) (tidemark, stock contender, err error) {
	dir, err := l.build(ctx, "tidemark", "tidemark/bench/stock")
	if err != nil {
		return tidemark, stock, err
	}
	tidemark = contender{program: filepath.Join(dir, "tidemark"), args: []string{"serve"}, env: l.environment()}
	stock = contender{program: filepath.Join(dir, "stock"), env: l.environment()}
	return tidemark, stock, tidemark.serving(ctx, func(one *server) error {
		return stock.serving(ctx, func(other *server) error { return l.alike(ctx, one, other) })
	})
}

// serving has something done with a process that has done nothing else.
func (c contender) serving(ctx context.Context, do func(*server) error) error {
	s, err := serve(ctx, c.env, c.program, c.args...)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.stop())
}

// alike checks that two servers tell the same person the same, at first and when something happens.
func (l *lab) alike(ctx context.Context, one, other *server) error {
	crowd := l.small()
	var viewers [2]*viewer
	for i, s := range []*server{one, other} {
		v, err := s.watch(ctx, dialer(), crowd.first, crowd.channel)
		if err != nil {
			return err
		}
		defer v.leave()
		viewers[i] = v
	}
	if err := samePayload(viewers[0].told, viewers[1].told); err != nil {
		return err
	}
	if err := one.send(ctx, crowd.channel); err != nil {
		return err
	}
	for _, v := range viewers {
		v.hurry()
		if err := v.next(); err != nil {
			return err
		}
	}
	return samePayload(viewers[0].told, viewers[1].told)
}

// samePayload checks that two messages of the protocol carry the same bytes.
func samePayload(one, other []byte) error {
	var messages [2]struct{ Payload json.RawMessage }
	for i, told := range [][]byte{one, other} {
		if err := json.Unmarshal(told, &messages[i]); err != nil {
			return err
		}
	}
	if !bytes.Equal(messages[0].Payload, messages[1].Payload) {
		return fmt.Errorf("the servers do not tell the same:\n%s\n%s", one, other)
	}
	return nil
}

// sending returns a client that sends a message to a channel, over and over, for a backend: its pace is not limited.
func (s *server) sending(ctx context.Context, to id.Channel) (*client, error) {
	return s.askingAs(ctx, person.Viewer{ID: crowdSender, Role: person.RoleService}, fmt.Sprintf(
		`mutation { sendMessage(channelId: "%d", body: "As long as people write when they chat.") { message { seq } } }`, to))
}

// send sends one message to a channel.
func (s *server) send(ctx context.Context, to id.Channel) error {
	sender, err := s.sending(ctx, to)
	if err != nil {
		return err
	}
	_, err = sender.ask()
	return errors.Join(err, sender.conn.Close())
}
