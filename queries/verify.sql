-- name: ListReaders :many
-- ListReaders returns people who are in some channel, in the order of their ids.
SELECT u.id
FROM users u
WHERE u.id > @after AND EXISTS (SELECT FROM channel_read_state rs WHERE rs.user_id = u.id AND rs.member)
ORDER BY u.id
LIMIT @page_size;

-- name: ListRandomReaders :many
-- ListRandomReaders returns some people who are in some channel: those whose ids follow random ones, in their order.
SELECT DISTINCT next.id::bigint AS id
FROM generate_series(1, @sample::integer) AS drawn (number)
CROSS JOIN LATERAL (
    SELECT u.id
    FROM users u
    WHERE u.id >= (
        SELECT lowest.id + floor(random() * (highest.id - lowest.id + 1) + 0 * drawn.number)::bigint
        FROM (SELECT min(l.id) AS id FROM users l) AS lowest, (SELECT max(h.id) AS id FROM users h) AS highest
    )
    ORDER BY u.id
    LIMIT 1
) AS next
ORDER BY id;

-- name: ListDrift :many
-- ListDrift recounts the badges of some people message by message, and returns those where the rows that badges are made
-- from say something else, in the order of their ids.
SELECT
    rs.user_id,
    rs.channel_id,
    h.high_water_seq,
    (SELECT coalesce(max(m.seq), 0) FROM message m WHERE m.channel_id = rs.channel_id)::bigint AS newest_seq,
    rs.last_read_seq,
    said.unread::bigint AS unread,
    counted.unread::bigint AS counted_unread,
    said.mentions::bigint AS mentions,
    counted.mentions::bigint AS counted_mentions
FROM channel_read_state rs
JOIN channel_head h ON h.channel_id = rs.channel_id
CROSS JOIN LATERAL (
    SELECT
        count(*) AS unread,
        count(*) FILTER (WHERE m.mentions_everyone OR rs.user_id = ANY(m.mentions)) AS mentions
    FROM message m
    WHERE m.channel_id = rs.channel_id
        AND m.seq > rs.last_read_seq
        AND m.deleted_version = 0
        AND m.sender_id <> rs.user_id
) AS counted
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN greatest(h.last_deleted_seq, rs.last_sent_seq) <= rs.last_read_seq
                THEN greatest(h.high_water_seq - rs.last_read_seq, 0)
            ELSE counted.unread
        END AS unread,
        (
            SELECT count(*)
            FROM mention n
            WHERE n.user_id = rs.user_id AND n.channel_id = rs.channel_id AND n.seq > rs.last_read_seq
        ) + CASE
            WHEN h.last_everyone_seq <= rs.last_read_seq THEN 0
            ELSE (
                SELECT count(*)
                FROM message m
                WHERE m.channel_id = rs.channel_id
                    AND m.seq > rs.last_read_seq
                    AND m.mentions_everyone
                    AND m.sender_id <> rs.user_id
            )
        END AS mentions
) AS said
WHERE rs.user_id = ANY(@user_ids::bigint[])
    AND rs.member
    AND (
        said.unread <> counted.unread
        OR said.mentions <> counted.mentions
        OR rs.last_read_seq > h.high_water_seq
        OR h.high_water_seq <> (SELECT coalesce(max(m.seq), 0) FROM message m WHERE m.channel_id = rs.channel_id)
    )
ORDER BY rs.user_id, rs.channel_id;
