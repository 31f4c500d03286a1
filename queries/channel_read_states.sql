-- name: JoinChannel :one
-- JoinChannel makes people members with their cursor at the head, which the caller has locked. Coming back is
-- joining; who is a member already stays as they are. Who was never in the channel gets the next member_index, beginning
-- with members_ever. People are held, so that what they share cannot change meanwhile. The ids are sorted by
-- the caller, and known.
WITH known AS (
    SELECT u.id, u.shares_read_receipts
    FROM users u
    WHERE u.id = ANY(@user_ids::bigint[])
    ORDER BY u.id
    FOR SHARE
),
newcomers AS (
    SELECT named.id, (@members_ever::integer) + row_number() OVER (ORDER BY named.id) - 1 AS member_index
    FROM unnest(@user_ids::bigint[]) AS named (id)
    WHERE NOT EXISTS (
        SELECT FROM channel_read_state rs
        WHERE rs.user_id = named.id AND rs.channel_id = @channel_id
        OFFSET 0
    )
),
joined AS (
    INSERT INTO channel_read_state AS rs
        (user_id, channel_id, last_read_seq, joined_seq, version, member_index, shares_receipts)
    SELECT
        known.id,
        h.channel_id,
        h.high_water_seq,
        h.high_water_seq,
        1,
        coalesce(newcomers.member_index, h.members_ever),
        known.shares_read_receipts
    FROM channel_head h
    CROSS JOIN known
    LEFT JOIN newcomers ON newcomers.id = known.id
    WHERE h.channel_id = @channel_id
    ORDER BY known.id
    ON CONFLICT (user_id, channel_id) DO UPDATE
    SET
        last_read_seq = excluded.last_read_seq,
        joined_seq = excluded.joined_seq,
        member = true,
        muted = false,
        version = rs.version + 1,
        moved_at = clock_timestamp(),
        moved_by = 'JOINED',
        moved_device = NULL,
        shares_receipts = excluded.shares_receipts
    WHERE NOT rs.member
    RETURNING user_id
)
SELECT
    (SELECT count(*) FROM joined)::integer AS joined,
    (SELECT count(*) FROM newcomers)::integer AS newcomers;

-- name: ListNotMembers :many
-- ListNotMembers returns those of the ids that are not members, so that adding members again writes nothing. The
-- OFFSET keeps each look-up one by key: without it, all members of the channel may be read.
SELECT named.id::bigint AS id
FROM unnest(@user_ids::bigint[]) AS named (id)
WHERE NOT EXISTS (
    SELECT FROM channel_read_state rs
    WHERE rs.user_id = named.id AND rs.channel_id = @channel_id AND rs.member
    OFFSET 0
)
ORDER BY named.id;

-- name: LeaveChannel :execrows
-- LeaveChannel ends a membership. The row stays, so that its version goes on from here when they come back.
UPDATE channel_read_state
SET member = false, version = version + 1
WHERE user_id = @user_id AND channel_id = @channel_id AND member;

-- name: GetJoinedSeq :one
-- GetJoinedSeq returns where a member joined, and no row for one who is not in the channel.
SELECT joined_seq
FROM channel_read_state
WHERE user_id = @user_id AND channel_id = @channel_id AND member;

-- name: ListMembers :many
-- ListMembers returns a page of a channel's members in the order of their ids.
SELECT rs.user_id AS id, coalesce(u.display_name, '')::text AS display_name
FROM channel_read_state rs
LEFT JOIN users u ON u.id = rs.user_id
WHERE rs.channel_id = @channel_id AND rs.member AND rs.user_id > @after
ORDER BY rs.user_id
LIMIT @page_size;

-- name: ListBadges :many
-- ListBadges returns the badge of each channel that the person is in, newest activity first. Where nothing in the
-- gap was deleted or is the person's own, unread is a subtraction; only elsewhere are rows counted, to count_to at
-- most. Both queries for badges read them alike: change the two together.
SELECT
    rs.channel_id,
    h.high_water_seq,
    rs.last_read_seq,
    rs.joined_seq,
    rs.read_epoch,
    rs.muted,
    h.version AS head_version,
    rs.version AS state_version,
    h.activity,
    rs.receipt_seq,
    rs.member_index,
    (CASE
        WHEN h.high_water_seq <= rs.last_read_seq THEN 0
        WHEN greatest(h.last_deleted_seq, rs.last_sent_seq) <= rs.last_read_seq THEN h.high_water_seq - rs.last_read_seq
        ELSE (
            SELECT count(*)
            FROM (
                SELECT
                FROM message m
                WHERE m.channel_id = rs.channel_id
                    AND m.seq > rs.last_read_seq
                    AND m.seq <= h.high_water_seq
                    AND m.deleted_version = 0
                    AND m.sender_id <> rs.user_id
                ORDER BY m.seq
                LIMIT @count_to
            ) AS countable
        )
    END)::bigint AS unread,
    (CASE
        WHEN h.high_water_seq <= rs.last_read_seq THEN 0
        ELSE (
            SELECT count(*)
            FROM (
                SELECT
                FROM mention n
                WHERE n.user_id = rs.user_id AND n.channel_id = rs.channel_id AND n.seq > rs.last_read_seq
                LIMIT @count_to
            ) AS named
        )
    END + CASE
        WHEN h.last_everyone_seq <= rs.last_read_seq THEN 0
        ELSE (
            SELECT count(*)
            FROM (
                SELECT
                FROM message m
                WHERE m.channel_id = rs.channel_id
                    AND m.seq > rs.last_read_seq
                    AND m.mentions_everyone
                    AND m.sender_id <> rs.user_id
                LIMIT @count_to
            ) AS named_with_everyone
        )
    END)::bigint AS mentions,
    (SELECT store_instance())::text AS store_instance
FROM channel_read_state rs
JOIN channel_head h ON h.channel_id = rs.channel_id
WHERE rs.user_id = @user_id AND rs.member
ORDER BY h.activity DESC;

-- name: ListBadgesOf :many
-- ListBadgesOf is ListBadges for some people, each in one channel, in the order of their ids. Who is not in the channel
-- is left out.
SELECT
    rs.user_id,
    rs.channel_id,
    h.high_water_seq,
    rs.last_read_seq,
    rs.joined_seq,
    rs.read_epoch,
    rs.muted,
    h.version AS head_version,
    rs.version AS state_version,
    h.activity,
    rs.receipt_seq,
    rs.member_index,
    (CASE
        WHEN h.high_water_seq <= rs.last_read_seq THEN 0
        WHEN greatest(h.last_deleted_seq, rs.last_sent_seq) <= rs.last_read_seq THEN h.high_water_seq - rs.last_read_seq
        ELSE (
            SELECT count(*)
            FROM (
                SELECT
                FROM message m
                WHERE m.channel_id = rs.channel_id
                    AND m.seq > rs.last_read_seq
                    AND m.seq <= h.high_water_seq
                    AND m.deleted_version = 0
                    AND m.sender_id <> rs.user_id
                ORDER BY m.seq
                LIMIT @count_to
            ) AS countable
        )
    END)::bigint AS unread,
    (CASE
        WHEN h.high_water_seq <= rs.last_read_seq THEN 0
        ELSE (
            SELECT count(*)
            FROM (
                SELECT
                FROM mention n
                WHERE n.user_id = rs.user_id AND n.channel_id = rs.channel_id AND n.seq > rs.last_read_seq
                LIMIT @count_to
            ) AS named
        )
    END + CASE
        WHEN h.last_everyone_seq <= rs.last_read_seq THEN 0
        ELSE (
            SELECT count(*)
            FROM (
                SELECT
                FROM message m
                WHERE m.channel_id = rs.channel_id
                    AND m.seq > rs.last_read_seq
                    AND m.mentions_everyone
                    AND m.sender_id <> rs.user_id
                LIMIT @count_to
            ) AS named_with_everyone
        )
    END)::bigint AS mentions
FROM ROWS FROM (unnest(@user_ids::bigint[]), unnest(@channel_ids::bigint[])) AS wanted (user_id, channel_id)
JOIN channel_read_state rs ON rs.user_id = wanted.user_id AND rs.channel_id = wanted.channel_id AND rs.member
JOIN channel_head h ON h.channel_id = rs.channel_id
ORDER BY rs.user_id, rs.channel_id;

-- name: ListVersions :many
-- ListVersions returns where each channel of some people stands: enough to tell whether a copy of a badge is the newest.
SELECT
    rs.user_id,
    rs.channel_id,
    h.version AS head_version,
    rs.version AS state_version,
    (SELECT store_instance())::text AS store_instance
FROM channel_read_state rs
JOIN channel_head h ON h.channel_id = rs.channel_id
WHERE rs.user_id = ANY(@user_ids::bigint[]) AND rs.member
ORDER BY rs.user_id;


-- name: GetStoreEpoch :one
-- GetStoreEpoch names this incarnation of the data, and the server that says so.
SELECT store_epoch()::text AS store_epoch, store_instance()::text AS store_instance;

-- name: AdvanceReadStates :batchone
-- AdvanceReadStates moves cursors forward, each to up_to_seq or to the head where that is nearer, in the order given,
-- all or none of them. It never moves one back. Where nothing moves, because the cursor is there, the epoch is older
-- than the stored one, or the person is not a member, it returns no row and writes nothing. It tells the head that it
-- clamped to, and no badge: the head may have moved on by the time that the cursor is committed.
UPDATE channel_read_state rs
SET
    last_read_seq = least(@up_to_seq::bigint, h.high_water_seq),
    receipt_seq = greatest(rs.receipt_seq, least(@up_to_seq::bigint, h.high_water_seq)),
    version = rs.version + 1,
    moved_at = clock_timestamp(),
    moved_by = 'MARK_READ',
    moved_device = sqlc.narg('device_id')
FROM channel_head h
WHERE rs.user_id = @user_id
    AND rs.channel_id = @channel_id
    AND h.channel_id = rs.channel_id
    AND rs.member
    AND rs.read_epoch <= coalesce(sqlc.narg('read_epoch')::integer, rs.read_epoch)
    AND rs.last_read_seq < least(@up_to_seq::bigint, h.high_water_seq)
RETURNING h.high_water_seq;

-- name: RetreatReadState :one
-- RetreatReadState makes from_seq and all after it unread again, though never what was there before joining, and
-- begins a new epoch. It never moves a cursor forward. With an epoch older than the stored one, and for one who is
-- not a member, it returns no row and writes nothing.
UPDATE channel_read_state rs
SET
    last_read_seq = greatest(rs.joined_seq, least((@from_seq::bigint) - 1, rs.last_read_seq)),
    read_epoch = rs.read_epoch + 1,
    version = rs.version + 1,
    moved_at = clock_timestamp(),
    moved_by = 'MARK_UNREAD',
    moved_device = NULL
FROM (
    SELECT b.user_id, b.channel_id, b.last_read_seq
    FROM channel_read_state b
    WHERE b.user_id = @user_id
        AND b.channel_id = @channel_id
        AND b.member
        AND b.read_epoch <= coalesce(sqlc.narg('read_epoch')::integer, b.read_epoch)
    FOR UPDATE
) AS held
WHERE rs.user_id = held.user_id AND rs.channel_id = held.channel_id
RETURNING held.last_read_seq > rs.last_read_seq AS moved;

-- name: SetMuted :execrows
-- SetMuted mutes or unmutes a channel for one person. Where it is so already, nothing is written. What came while it was
-- muted stays so where it is still to be found out to whom it counts.
UPDATE channel_read_state rs
SET
    muted = @muted,
    muted_until_seq = CASE WHEN rs.muted THEN h.high_water_seq ELSE rs.muted_until_seq END,
    version = rs.version + 1
FROM channel_head h
WHERE rs.user_id = @user_id
    AND rs.channel_id = @channel_id
    AND h.channel_id = rs.channel_id
    AND rs.member
    AND rs.muted <> @muted;
