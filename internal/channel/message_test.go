package channel

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/fault"
	"tidemark/internal/id"
	"tidemark/internal/person"
)

const (
	anna id.User = iota + 1
	ben
	cleo
)

func TestAMessageIsSeenByEachInTheirWay(t *testing.T) {
	t.Parallel()
	name := "from anna's phone"
	named := Message{Sender: person.Called(anna, "Anna"), ClientMessageID: &name, Mentions: []id.User{anna, ben}}
	everyone := Message{Sender: person.Called(anna, "Anna"), ClientMessageID: &name, MentionsEveryone: true}
	for _, test := range []struct {
		what      string
		message   Message
		viewer    id.User
		mentioned bool
		knowsName bool
	}{
		{"who is named", named, ben, true, false},
		{"who is not", named, cleo, false, false},
		{"the sender, though named", named, anna, false, true},
		{"everyone", everyone, cleo, true, false},
		{"everyone but the sender", everyone, anna, false, true},
	} {
		got := test.message.For(test.viewer)
		if got.MentionsViewer != test.mentioned || (got.ClientMessageID != nil) != test.knowsName {
			t.Errorf("%s sees %+v", test.what, got)
		}
	}
}

func TestDraftsOutOfBounds(t *testing.T) {
	t.Parallel()
	for argument, draft := range map[string]Draft{
		"":                {Body: strings.Repeat("\u00e9", MaxBodyLength), Mentions: make([]id.User, MaxMentions)},
		"body":            {Body: strings.Repeat("e", MaxBodyLength+1)},
		"clientMessageId": {ClientMessageID: strings.Repeat("e", maxClientID+1)},
		"mentions":        {Mentions: make([]id.User, MaxMentions+1)},
	} {
		err := draft.check()
		if (err == nil) != (argument == "") {
			t.Errorf("%q: %v", argument, err)
		}
		if err != nil && (fault.CodeOf(err) != fault.BadUserInput || !strings.HasPrefix(fault.MessageOf(err), argument+" ")) {
			t.Errorf("%q: %v", argument, err)
		}
	}
}

func TestDistinctSortsAndLeavesItsArgumentAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOf(rapid.Map(rapid.IntRange(1, 9), func(n int) id.User { return id.User(n) })).Draw(t, "people")
		before := slices.Clone(given)
		got := distinct(given)
		if !slices.Equal(given, before) {
			t.Errorf("the argument became %v", given)
		}
		for i, user := range got {
			if i > 0 && got[i-1] >= user || !slices.Contains(given, user) {
				t.Errorf("%v of %v", got, given)
			}
		}
		for _, user := range given {
			if !slices.Contains(got, user) {
				t.Errorf("%d is missing in %v", user, got)
			}
		}
	})
}
