-- name: CountPeople :one
-- CountPeople counts everybody who is known.
SELECT count(*) FROM users;

-- name: ListPeopleAfter :many
-- ListPeopleAfter returns everybody who is known, in the order of their ids.
SELECT u.id
FROM users u
WHERE u.id > @after
ORDER BY u.id
LIMIT @page_size;

-- name: ListRandomPeople :many
-- ListRandomPeople returns some people, each as likely as any other whatever gaps are between their ids. Of a large table
-- it reads some pages drawn at random, with about so many rows as it is to read, and then draws among those.
SELECT u.id
FROM users u TABLESAMPLE SYSTEM ((
    SELECT least(100, 100.0 * (@rows_to_read::bigint) / greatest(c.reltuples, 1)) FROM pg_catalog.pg_class c WHERE c.oid = 'users'::regclass
))
ORDER BY random()
LIMIT @sample;

-- name: ListChannelsOf :many
-- ListChannelsOf returns the channels that some people are in, in the order of their ids.
SELECT DISTINCT rs.channel_id
FROM channel_read_state rs
WHERE rs.user_id = ANY(@user_ids::bigint[]) AND rs.member
ORDER BY rs.channel_id;

-- name: ListDrift :many
-- ListDrift recounts the badges of some people message by message, and returns what the rows that badges are made from
-- say, where that is something else, in the order of their ids. Where count_to messages lie after a cursor, the counts are not
-- compared, and the badge is told as not counted. What a badge says is read as ListBadges does: change the two together.
SELECT rs.user_id, rs.channel_id, drift.what::text AS what, drift.kept::bigint AS kept, drift.counted::bigint AS counted
FROM channel_read_state rs
JOIN channel_head h ON h.channel_id = rs.channel_id
CROSS JOIN LATERAL (
    SELECT coalesce(max(m.seq), 0) AS seq FROM message m WHERE m.channel_id = rs.channel_id
) AS newest
CROSS JOIN LATERAL (
    SELECT
        count(*) >= @count_to::bigint AS too_many,
        count(*) FILTER (WHERE later.counts) AS unread,
        count(*) FILTER (WHERE later.counts AND later.seq <= h.high_water_seq) AS unread_to_head,
        count(*) FILTER (WHERE later.counts AND later.names) AS mentions
    FROM (
        SELECT
            m.seq,
            m.deleted_version = 0 AND m.sender_id <> rs.user_id AS counts,
            m.mentions_everyone OR rs.user_id = ANY(m.mentions) AS names
        FROM message m
        WHERE m.channel_id = rs.channel_id AND m.seq > rs.last_read_seq
        ORDER BY m.seq
        LIMIT @count_to::bigint
    ) AS later
) AS recount
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN h.high_water_seq <= rs.last_read_seq THEN 0
            WHEN greatest(h.last_deleted_seq, rs.last_sent_seq) <= rs.last_read_seq THEN h.high_water_seq - rs.last_read_seq
            ELSE recount.unread_to_head
        END AS unread,
        CASE
            WHEN h.high_water_seq <= rs.last_read_seq THEN 0
            ELSE (
                SELECT count(*)
                FROM mention n
                WHERE n.user_id = rs.user_id AND n.channel_id = rs.channel_id AND n.seq > rs.last_read_seq
            )
        END + CASE
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
) AS badge
CROSS JOIN LATERAL (
    VALUES
        ('unread', badge.unread, CASE WHEN recount.too_many THEN badge.unread ELSE recount.unread END),
        ('mentions', badge.mentions, CASE WHEN recount.too_many THEN badge.mentions ELSE recount.mentions END),
        ('last_read_seq', rs.last_read_seq, least(rs.last_read_seq, newest.seq)),
        ('not_counted', recount.too_many::integer, 0)
) AS drift (what, kept, counted)
WHERE rs.user_id = ANY(@user_ids::bigint[]) AND rs.member AND drift.kept <> drift.counted
ORDER BY rs.user_id, rs.channel_id, drift.what;

-- name: ListHeadDrift :many
-- ListHeadDrift compares the heads of some channels with their messages and members, and returns what each says that is
-- something else, in the order of their ids. A seq without a message, which only a damaged head gives out, is as one of a
-- deleted message: it is not to be counted. The largest seq that mentions everyone may be that of a message that was
-- deleted since, and a version is larger than any that was given out.
SELECT h.channel_id, drift.what::text AS what, drift.kept::bigint AS kept, drift.counted::bigint AS counted
FROM channel_head h
LEFT JOIN LATERAL (
    SELECT m.seq, m.id FROM message m WHERE m.channel_id = h.channel_id ORDER BY m.seq DESC LIMIT 1
) AS newest ON true
CROSS JOIN LATERAL (
    SELECT coalesce(max(m.seq), 0) AS seq, coalesce(max(m.deleted_version), 0) AS version
    FROM message m
    WHERE m.channel_id = h.channel_id AND m.deleted_version > 0
) AS deleted
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN count(*) = max(m.seq) THEN 0
            ELSE (
                SELECT coalesce(max(after.seq) - 1, 0)
                FROM message after
                WHERE after.channel_id = h.channel_id
                    AND after.seq > 1
                    AND NOT EXISTS (SELECT FROM message b WHERE b.channel_id = after.channel_id AND b.seq = after.seq - 1)
            )
        END AS seq
    FROM message m
    WHERE m.channel_id = h.channel_id
) AS without_message
CROSS JOIN LATERAL (
    SELECT coalesce(max(m.seq), 0) AS seq FROM message m WHERE m.channel_id = h.channel_id AND m.mentions_everyone
) AS everyone
CROSS JOIN LATERAL (
    SELECT count(*) AS number FROM channel_read_state rs WHERE rs.channel_id = h.channel_id AND rs.member
) AS members
CROSS JOIN LATERAL (
    VALUES
        ('high_water_seq', h.high_water_seq, coalesce(newest.seq, 0)),
        ('activity', h.activity, coalesce(newest.id, h.activity)),
        ('version', h.version, greatest(h.version, newest.seq, deleted.version)),
        ('last_deleted_seq', h.last_deleted_seq, greatest(deleted.seq, without_message.seq)),
        ('deleted_version', h.deleted_version, deleted.version),
        (
            'last_everyone_seq',
            h.last_everyone_seq,
            CASE
                WHEN h.last_everyone_seq > coalesce(newest.seq, 0) THEN everyone.seq
                ELSE greatest(h.last_everyone_seq, everyone.seq)
            END
        ),
        ('member_count', h.member_count, members.number)
) AS drift (what, kept, counted)
WHERE h.channel_id = ANY(@channel_ids::bigint[]) AND drift.kept <> drift.counted
ORDER BY h.channel_id, drift.what;

-- name: ListReadStateDrift :many
-- ListReadStateDrift compares the read states of some channels' members, and their mentions, with the messages, and
-- returns what each says that is something else, in the order of their ids. It finds what no badge shows as long as
-- nothing is marked unread. What lies before joining counts for nothing, and is not compared.
WITH sent AS (
    SELECT m.channel_id, m.sender_id, max(m.seq) AS seq
    FROM message m
    WHERE m.channel_id = ANY(@channel_ids::bigint[])
    GROUP BY m.channel_id, m.sender_id
),
missing AS (
    SELECT rs.user_id, rs.channel_id, count(*) AS number
    FROM message m
    CROSS JOIN LATERAL unnest(m.mentions) AS named (user_id)
    JOIN channel_read_state rs ON rs.user_id = named.user_id AND rs.channel_id = m.channel_id AND rs.member AND rs.joined_seq < m.seq
    LEFT JOIN mention n ON n.user_id = named.user_id AND n.channel_id = m.channel_id AND n.seq = m.seq
    WHERE m.channel_id = ANY(@channel_ids::bigint[])
        AND m.deleted_version = 0
        AND NOT m.mentions_everyone
        AND n.seq IS NULL
    GROUP BY rs.user_id, rs.channel_id
),
left_over AS (
    SELECT rs.user_id, rs.channel_id, count(*) AS number
    FROM channel_read_state rs
    JOIN mention n ON n.user_id = rs.user_id AND n.channel_id = rs.channel_id
    LEFT JOIN message m
        ON m.channel_id = n.channel_id
        AND m.seq = n.seq
        AND m.deleted_version = 0
        AND NOT m.mentions_everyone
        AND n.user_id = ANY(m.mentions)
    WHERE rs.channel_id = ANY(@channel_ids::bigint[])
        AND rs.member
        AND m.seq IS NULL
        AND n.seq > least(
            rs.joined_seq,
            (SELECT coalesce(max(l.seq), 0) FROM message l WHERE l.channel_id = rs.channel_id)
        )
    GROUP BY rs.user_id, rs.channel_id
)
SELECT rs.user_id, rs.channel_id, drift.what::text AS what, drift.kept::bigint AS kept, drift.counted::bigint AS counted
FROM channel_read_state rs
CROSS JOIN LATERAL (
    SELECT coalesce(max(m.seq), 0) AS seq FROM message m WHERE m.channel_id = rs.channel_id
) AS newest
LEFT JOIN sent ON sent.channel_id = rs.channel_id AND sent.sender_id = rs.user_id
LEFT JOIN missing ON missing.channel_id = rs.channel_id AND missing.user_id = rs.user_id
LEFT JOIN left_over ON left_over.channel_id = rs.channel_id AND left_over.user_id = rs.user_id
CROSS JOIN LATERAL (
    VALUES
        ('last_read_seq', rs.last_read_seq, least(rs.last_read_seq, newest.seq)),
        ('joined_seq', rs.joined_seq, least(rs.joined_seq, newest.seq)),
        ('receipt_seq', rs.receipt_seq, least(rs.receipt_seq, newest.seq)),
        ('muted_until_seq', rs.muted_until_seq, least(rs.muted_until_seq, newest.seq)),
        (
            'last_sent_seq',
            rs.last_sent_seq,
            CASE
                WHEN greatest(rs.last_sent_seq, sent.seq) <= rs.joined_seq AND rs.last_sent_seq <= newest.seq THEN rs.last_sent_seq
                ELSE coalesce(sent.seq, 0)
            END
        ),
        ('mentions_missing', missing.number, 0),
        ('mentions_left_over', left_over.number, 0)
) AS drift (what, kept, counted)
WHERE rs.channel_id = ANY(@channel_ids::bigint[]) AND rs.member AND drift.kept <> drift.counted
ORDER BY rs.user_id, rs.channel_id, drift.what;

-- name: RepairHead :one
-- RepairHead sets what is given of a head that the caller has locked, in a new version, which it returns. A deletion
-- that the head did not know of is one of this version.
UPDATE channel_head h
SET
    high_water_seq = coalesce(sqlc.narg('high_water_seq'), h.high_water_seq),
    activity = coalesce(sqlc.narg('activity'), h.activity),
    version = greatest(h.version, sqlc.narg('version')::bigint) + 1,
    last_deleted_seq = coalesce(sqlc.narg('last_deleted_seq'), h.last_deleted_seq),
    deleted_version = CASE
        WHEN sqlc.narg('deleted_version')::bigint > h.deleted_version THEN greatest(h.version, sqlc.narg('version')::bigint) + 1
        ELSE coalesce(sqlc.narg('deleted_version')::bigint, h.deleted_version)
    END,
    last_everyone_seq = coalesce(sqlc.narg('last_everyone_seq'), h.last_everyone_seq),
    member_count = coalesce(sqlc.narg('member_count'), h.member_count)
WHERE h.channel_id = @channel_id
RETURNING h.version;

-- name: StampDeletions :exec
-- StampDeletions has messages that were deleted after a version be deleted in another, so that devices which were not
-- told of them are told now. The caller has locked the head.
UPDATE message
SET deleted_version = @version
WHERE channel_id = @channel_id AND deleted_version > @after::bigint AND deleted_version > 0;

-- name: RepairReadStates :exec
-- RepairReadStates takes some members' cursors back to the head, which the caller has locked and put right, and sets the
-- newest message that each sent where it is given, not -1. A cursor that is taken back begins an epoch, as by a mark
-- unread, so that no late mark read brings it on again. The user ids are sorted by the caller; the rows are locked in
-- their order.
WITH given AS (
    SELECT u.user_id, u.sent_seq
    FROM ROWS FROM (unnest(@user_ids::bigint[]), unnest(@sent_seqs::bigint[])) AS u (user_id, sent_seq)
),
locked AS (
    SELECT b.user_id, b.channel_id
    FROM channel_read_state b
    WHERE b.channel_id = @channel_id AND b.user_id = ANY(@user_ids::bigint[])
    ORDER BY b.user_id
    FOR UPDATE
)
UPDATE channel_read_state rs
SET
    last_read_seq = least(rs.last_read_seq, h.high_water_seq),
    joined_seq = least(rs.joined_seq, h.high_water_seq),
    receipt_seq = least(rs.receipt_seq, h.high_water_seq),
    muted_until_seq = least(rs.muted_until_seq, h.high_water_seq),
    last_sent_seq = CASE WHEN given.sent_seq < 0 THEN rs.last_sent_seq ELSE given.sent_seq END,
    read_epoch = rs.read_epoch + CASE WHEN rs.last_read_seq > h.high_water_seq THEN 1 ELSE 0 END,
    version = rs.version + 1
FROM locked, given, channel_head h
WHERE rs.user_id = locked.user_id
    AND rs.channel_id = locked.channel_id
    AND given.user_id = rs.user_id
    AND h.channel_id = rs.channel_id;

-- name: DropMentions :exec
-- DropMentions takes away the mentions of some people in a channel that no message makes. The caller has locked the head.
DELETE FROM mention n
WHERE n.user_id = ANY(@user_ids::bigint[])
    AND n.channel_id = @channel_id
    AND NOT EXISTS (
        SELECT FROM message m
        WHERE m.channel_id = n.channel_id
            AND m.seq = n.seq
            AND m.deleted_version = 0
            AND NOT m.mentions_everyone
            AND n.user_id = ANY(m.mentions)
    );

-- name: AddMentions :exec
-- AddMentions adds the mentions of some people in a channel that are missing. The caller has locked the head.
INSERT INTO mention (user_id, channel_id, seq)
SELECT named.user_id, m.channel_id, m.seq
FROM message m
CROSS JOIN LATERAL unnest(m.mentions) AS named (user_id)
WHERE m.channel_id = @channel_id
    AND m.deleted_version = 0
    AND NOT m.mentions_everyone
    AND named.user_id = ANY(@user_ids::bigint[])
ORDER BY named.user_id, m.seq
ON CONFLICT (user_id, channel_id, seq) DO NOTHING;

-- name: ClampDeliveries :exec
-- ClampDeliveries takes what the devices of a channel's members received back to the head, which the caller has locked and
-- put right: what is sent next has seqs that the records are past. The rows are locked in their order.
WITH locked AS (
    SELECT d.user_id, d.device_id, d.channel_id
    FROM channel_read_state rs
    JOIN channel_head h ON h.channel_id = rs.channel_id
    JOIN device_sync_state d ON d.user_id = rs.user_id AND d.channel_id = rs.channel_id
    WHERE rs.channel_id = @channel_id AND rs.member AND d.last_delivered_seq > h.high_water_seq
    ORDER BY d.user_id, d.device_id
    FOR UPDATE OF d
)
UPDATE device_sync_state d
SET last_delivered_seq = least(d.last_delivered_seq, h.high_water_seq)
FROM locked
JOIN channel_head h ON h.channel_id = locked.channel_id
WHERE d.user_id = locked.user_id AND d.device_id = locked.device_id AND d.channel_id = locked.channel_id;
