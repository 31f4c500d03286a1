package person

import (
	"context"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"tidemark/internal/id"
)

// rememberedViewers bounds how many viewers a process knows to be kept already: some 100 bytes each.
const rememberedViewers = 100_000

const (
	// rememberedNames bounds the names that are kept for lists of people.
	rememberedNames = 10_000
	// nameTTL is how long an old name may be shown in a list.
	nameTTL = 10 * time.Second
)

// Store keeps people.
type Store interface {
	// KeepPerson makes a person known. A name that is not empty becomes theirs.
	KeepPerson(ctx context.Context, user id.User, name string) error
	// People returns those of the ids that are known, in no particular order.
	People(ctx context.Context, users []id.User) ([]Person, error)
}

// Directory knows people: those who came with a token, and those whom others named.
type Directory struct {
	store Store
	kept  *lru.Cache[id.User, string]
	names *lru.Cache[id.User, named]
}

// named is a person as they were called, until it is looked up again.
type named struct {
	person Person
	until  time.Time
}

// NewDirectory returns the directory kept in store.
func NewDirectory(store Store) (*Directory, error) {
	kept, err := lru.New[id.User, string](rememberedViewers)
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	names, err := lru.New[id.User, named](rememberedNames)
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	return &Directory{store: store, kept: kept, names: names}, nil
}

// Welcome makes the viewer known under the name that their token tells. Only the first call of a viewer, and one with
// another name than before, asks the store.
func (d *Directory) Welcome(ctx context.Context, v Viewer) error {
	if name, ok := d.kept.Get(v.ID); ok && (v.Name == name || v.Name == "") {
		return nil
	}
	if err := d.store.KeepPerson(ctx, v.ID, v.Name); err != nil {
		return fmt.Errorf("welcome: %w", err)
	}
	d.kept.Add(v.ID, v.Name)
	return nil
}

// Get returns a person. Somebody unknown is a person without a name.
func (d *Directory) Get(ctx context.Context, user id.User) (Person, error) {
	people, err := d.store.People(ctx, []id.User{user})
	if err != nil {
		return Person{}, fmt.Errorf("get person: %w", err)
	}
	if len(people) == 0 {
		return Called(user, ""), nil
	}
	return people[0], nil
}

// GetMany returns people by their ids, from a cache for a moment: a new name shows within nameTTL. Somebody unknown is a
// person without a name.
func (d *Directory) GetMany(ctx context.Context, users []id.User) (map[id.User]Person, error) {
	people := make(map[id.User]Person, len(users))
	var missing []id.User
	now := time.Now()
	for _, user := range users {
		if _, asked := people[user]; asked {
			continue
		}
		cached, ok := d.names.Get(user)
		people[user] = cached.person
		if !ok || now.After(cached.until) {
			missing = append(missing, user)
		}
	}
	if len(missing) == 0 {
		return people, nil
	}
	found, err := d.store.People(ctx, missing)
	if err != nil {
		return nil, fmt.Errorf("get people: %w", err)
	}
	for _, user := range missing {
		people[user] = Called(user, "")
	}
	for _, p := range found {
		people[p.ID] = p
	}
	for _, user := range missing {
		d.names.Add(user, named{people[user], now.Add(nameTTL)})
	}
	return people, nil
}

// Called returns a person under their name, or under their number where they have told none.
func Called(user id.User, name string) Person {
	if name == "" {
		name = "Person " + user.String()
	}
	return Person{ID: user, DisplayName: name}
}
