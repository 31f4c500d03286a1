package person_test

import (
	"context"
	"sync/atomic"
	"testing"

	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// counting counts how often a store is asked to keep somebody.
type counting struct {
	*postgres.Store
	kept atomic.Int32
}

func (c *counting) KeepPerson(ctx context.Context, user id.User, name string) error {
	c.kept.Add(1)
	return c.Store.KeepPerson(ctx, user, name)
}

func newDirectory(t *testing.T) (*person.Directory, *counting) {
	t.Helper()
	store, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.NewDatabase(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	counted := &counting{Store: store}
	directory, err := person.NewDirectory(counted)
	if err != nil {
		t.Fatal(err)
	}
	return directory, counted
}

func TestAViewerIsKeptOnceForEachName(t *testing.T) {
	t.Parallel()
	directory, store := newDirectory(t)
	for _, step := range []struct {
		token string
		asked int32
		name  string
	}{
		{"", 1, "Person 7"},
		{"", 1, "Person 7"},
		{"Anna", 2, "Anna"},
		{"Anna", 2, "Anna"},
		{"", 2, "Anna"}, // a token without a name takes none away
		{"Anna", 2, "Anna"},
		{"Anne", 3, "Anne"},
	} {
		if err := directory.Welcome(t.Context(), person.Viewer{ID: 7, Name: step.token}); err != nil {
			t.Fatal(err)
		}
		got, err := directory.Get(t.Context(), 7)
		if err != nil || got != (person.Person{ID: 7, DisplayName: step.name}) {
			t.Errorf("a token of %q makes %+v, %v; want %q", step.token, got, err, step.name)
		}
		if asked := store.kept.Load(); asked != step.asked {
			t.Errorf("a token of %q: the store was asked %d times, want %d", step.token, asked, step.asked)
		}
	}
}

func TestSomebodyUnknownHasNoName(t *testing.T) {
	t.Parallel()
	directory, _ := newDirectory(t)
	if got, err := directory.Get(t.Context(), 8); err != nil || got != (person.Person{ID: 8, DisplayName: "Person 8"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAViewerWhoWasNotKeptIsTriedAgain(t *testing.T) {
	t.Parallel()
	directory, store := newDirectory(t)
	viewer := person.Viewer{ID: 7, Name: "An\x00na"} // no text that Postgres can keep
	for range 2 {
		if err := directory.Welcome(t.Context(), viewer); err == nil {
			t.Error("a failure was not told")
		}
	}
	if asked := store.kept.Load(); asked != 2 {
		t.Errorf("the store was asked %d times, want 2", asked)
	}
}

func TestViewerTravelsInTheContext(t *testing.T) {
	t.Parallel()
	if _, ok := person.FromContext(t.Context()); ok {
		t.Error("a viewer out of nowhere")
	}
	anna := person.Viewer{ID: 7, Name: "Anna", Role: person.RoleSupport}
	if got, ok := person.FromContext(person.NewContext(t.Context(), anna)); !ok || got != anna {
		t.Errorf("%+v, %v", got, ok)
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for role, valid := range map[person.Role]bool{
		person.RoleUser: true, person.RoleSupport: true, person.RoleService: true, "": false, "User": false, "admin": false,
	} {
		if role.Valid() != valid {
			t.Errorf("%q: %v", role, !valid)
		}
	}
}
