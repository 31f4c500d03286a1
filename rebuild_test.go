package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/alecthomas/kong"

	"tidemark/internal/id"
	"tidemark/internal/verify"
)

// counts are projections of three people.
type counts map[id.User]int

func (c counts) DriftOf(context.Context, []id.User) ([]verify.ProjectionDrift, error) {
	return nil, errors.New("nobody asked")
}

func (c counts) Drop(_ context.Context, users []id.User) (dropped int, err error) {
	for _, user := range users {
		if _, ok := c[user]; ok {
			delete(c, user)
			dropped++
		}
	}
	return dropped, nil
}

func (c counts) CountPeople(context.Context) (int, error) { return 3, nil }

func (c counts) PeopleAfter(_ context.Context, after id.User, _ int) ([]id.User, error) {
	if after > 0 {
		return nil, nil
	}
	return []id.User{1, 2, 3}, nil
}

func TestRebuildCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
		left int
	}{
		{[]string{"newly-unread", "--quiet", "--user", "2"}, "1 people, 1 projections dropped: each is made anew when it is read next\n", 1},
		{[]string{"newly-unread", "--quiet"}, "3 people, 2 projections dropped: each is made anew when it is read next\n", 0},
	} {
		var command rebuildCommand
		parser, err := kong.New(&command)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		kept := counts{1: 1, 2: 1}
		var out bytes.Buffer
		if err := command.NewlyUnread.rebuild(t.Context(), kept, kept, &out); err != nil || out.String() != test.want || len(kept) != test.left {
			t.Errorf("%v: %v\n%s%v are left", test.args, err, out.String(), kept)
		}
		if _, err := parser.Parse([]string{"newly-unread", "--user", "-2"}); err == nil {
			t.Error("a person without an id is taken")
		}
	}
}
