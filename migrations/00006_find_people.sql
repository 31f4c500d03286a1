-- +goose Up

-- Support finds people by how their names begin.
CREATE INDEX users_name ON users ((lower(display_name)) COLLATE "C", id);

-- +goose Down

DROP INDEX users_name;
