-- name: ExplainBadges :many
-- ExplainBadges tells what the badges of a person are made of, for those channels in a stretch of ids that they are in, in
-- the order of the ids: all of one moment. unread and mentions are read as ListBadges reads them, to count_to at most:
-- change them together. What the gap holds that does not count is counted to its end, which can take long where somebody
-- marked a year unread; it is looked for only where the head or the read state knows of any.
SELECT
    rs.channel_id,
    c.name,
    coalesce(other.id, 0)::bigint AS other_id,
    coalesce(other.display_name, '')::text AS other_name,
    h.high_water_seq,
    rs.last_read_seq,
    rs.receipt_seq,
    rs.joined_seq,
    rs.read_epoch,
    rs.muted,
    h.version AS head_version,
    rs.version AS state_version,
    h.activity,
    rs.moved_at,
    rs.moved_by,
    rs.moved_device,
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
    (CASE
        WHEN h.last_deleted_seq <= rs.last_read_seq THEN 0
        ELSE (
            SELECT count(*)
            FROM message m
            WHERE m.channel_id = rs.channel_id
                AND m.seq > rs.last_read_seq
                AND m.seq <= h.last_deleted_seq
                AND m.deleted_version > 0
        )
    END)::bigint AS deleted,
    (CASE
        WHEN rs.last_sent_seq <= rs.last_read_seq THEN 0
        ELSE (
            SELECT count(*)
            FROM message m
            WHERE m.channel_id = rs.channel_id
                AND m.seq > rs.last_read_seq
                AND m.seq <= rs.last_sent_seq
                AND m.deleted_version = 0
                AND m.sender_id = rs.user_id
        )
    END)::bigint AS own,
    ARRAY(
        SELECT d.device_id
        FROM device v
        JOIN device_sync_state d ON d.user_id = v.user_id AND d.device_id = v.device_id AND d.channel_id = rs.channel_id
        WHERE v.user_id = rs.user_id
        ORDER BY d.confirmed_at DESC, d.device_id
        LIMIT @max_devices
    )::text[] AS devices,
    ARRAY(
        SELECT d.last_delivered_seq
        FROM device v
        JOIN device_sync_state d ON d.user_id = v.user_id AND d.device_id = v.device_id AND d.channel_id = rs.channel_id
        WHERE v.user_id = rs.user_id
        ORDER BY d.confirmed_at DESC, d.device_id
        LIMIT @max_devices
    )::bigint[] AS delivered,
    ARRAY(
        SELECT d.confirmed_at
        FROM device v
        JOIN device_sync_state d ON d.user_id = v.user_id AND d.device_id = v.device_id AND d.channel_id = rs.channel_id
        WHERE v.user_id = rs.user_id
        ORDER BY d.confirmed_at DESC, d.device_id
        LIMIT @max_devices
    )::timestamptz[] AS confirmed
FROM channel_read_state rs
JOIN channel c ON c.id = rs.channel_id
JOIN channel_head h ON h.channel_id = rs.channel_id
LEFT JOIN users other
    ON other.id = CASE WHEN c.direct_low = @user_id::bigint THEN c.direct_high ELSE c.direct_low END
WHERE rs.user_id = @user_id::bigint
    AND rs.channel_id BETWEEN @first_id::bigint AND @last_id::bigint
    AND rs.member
ORDER BY rs.channel_id
LIMIT @page_size;

-- name: ListDevices :many
-- ListDevices returns a person's devices, the one that confirmed last first, and in how many channels each holds something.
-- Of one whose records were all reset it tells when it was heard of, to the day.
SELECT
    v.device_id,
    coalesce(
        (SELECT max(d.confirmed_at) FROM device_sync_state d WHERE d.user_id = v.user_id AND d.device_id = v.device_id),
        v.seen_at
    )::timestamptz AS confirmed_at,
    (SELECT count(*) FROM device_sync_state d WHERE d.user_id = v.user_id AND d.device_id = v.device_id) AS channels
FROM device v
WHERE v.user_id = @user_id
ORDER BY confirmed_at DESC, v.device_id
LIMIT @page_size;

-- name: FindUsers :many
-- FindUsers returns people whose names begin with a text, whatever its case, in the order of their names. It reads the
-- index users_name alone, for as many entries as are asked for.
SELECT u.id, u.display_name
FROM users u
WHERE lower(u.display_name) COLLATE "C" >= lower(@beginning::text) COLLATE "C"
    AND lower(u.display_name) COLLATE "C" < (lower(@beginning::text) || chr(1114111)) COLLATE "C"
ORDER BY lower(u.display_name) COLLATE "C", u.id
LIMIT @page_size;
