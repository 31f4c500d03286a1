-- name: UpsertUser :exec
-- UpsertUser makes a person known, and keeps the name that their token tells. An empty name changes nothing, and
-- neither does the one already kept.
INSERT INTO users AS u (id, display_name)
VALUES (@id, @display_name)
ON CONFLICT (id) DO UPDATE
SET display_name = excluded.display_name
WHERE excluded.display_name <> '' AND u.display_name <> excluded.display_name;

-- name: EnsureUsers :exec
-- EnsureUsers makes people known who are named as members before they ever came themselves. The ids are sorted by
-- the caller.
INSERT INTO users (id)
SELECT id
FROM unnest(@ids::bigint[]) WITH ORDINALITY AS named (id, position)
ORDER BY position
ON CONFLICT (id) DO NOTHING;

-- name: ListUsers :many
-- ListUsers returns those of the ids that are known.
SELECT id, display_name
FROM users
WHERE id = ANY(@ids::bigint[])
ORDER BY id;

-- name: GetLargestID :one
-- GetLargestID returns the largest id of anybody and any channel, and 0 where there is none.
SELECT greatest(
    coalesce((SELECT max(users.id) FROM users), 0),
    coalesce((SELECT max(channel.id) FROM channel), 0)
)::bigint AS id;
