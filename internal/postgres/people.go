package postgres

import (
	"context"

	"tidemark/internal/id"
	"tidemark/internal/person"
	"tidemark/internal/postgres/internal/dbsqlc"
)

// KeepPerson implements person.Store. It looks first, so that who is known can read while Postgres takes no writes.
func (s *Store) KeepPerson(ctx context.Context, user id.User, name string) error {
	_, err := again(ctx, s, func() (struct{}, error) {
		known, err := s.q.ListUsers(ctx, s.pool, []int64{int64(user)})
		if err != nil || len(known) == 1 && (name == "" || known[0].DisplayName == name) {
			return struct{}{}, err
		}
		return struct{}{}, s.q.UpsertUser(ctx, s.pool, int64(user), name)
	})
	return err
}

// People implements person.Store.
func (s *Store) People(ctx context.Context, users []id.User) ([]person.Person, error) {
	rows, err := again(ctx, s, func() ([]dbsqlc.ListUsersRow, error) { return s.q.ListUsers(ctx, s.pool, int64s(users)) })
	if err != nil {
		return nil, err
	}
	people := make([]person.Person, len(rows))
	for i, row := range rows {
		people[i] = person.Called(id.User(row.ID), row.DisplayName)
	}
	return people, nil
}

func int64s[T ~int64](ids []T) []int64 {
	plain := make([]int64, len(ids))
	for i, n := range ids {
		plain[i] = int64(n)
	}
	return plain
}
