-- name: ConfirmDelivery :many
-- ConfirmDelivery merges what a device says it holds into its cursors, which only grow and never pass the head. A
-- version goes with its seq: it is taken over with a larger seq, and by maximum with the same. One of -1 is not known.
-- Channels that the person is not in are left out. The channel ids are sorted by the caller, each once.
INSERT INTO device_sync_state AS d (user_id, device_id, channel_id, last_delivered_seq, version, confirmed_at)
SELECT
    rs.user_id,
    @device_id,
    rs.channel_id,
    least(given.seq, h.high_water_seq),
    least(given.version, h.version),
    clock_timestamp()
FROM ROWS FROM (unnest(@channel_ids::bigint[]), unnest(@seqs::bigint[]), unnest(@versions::bigint[]))
    AS given (channel_id, seq, version)
JOIN channel_read_state rs ON rs.user_id = @user_id AND rs.channel_id = given.channel_id AND rs.member
JOIN channel_head h ON h.channel_id = rs.channel_id
ORDER BY rs.channel_id
ON CONFLICT (user_id, device_id, channel_id) DO UPDATE
SET
    last_delivered_seq = greatest(d.last_delivered_seq, excluded.last_delivered_seq),
    version = CASE
        WHEN excluded.version < 0 OR excluded.last_delivered_seq < d.last_delivered_seq THEN d.version
        WHEN excluded.last_delivered_seq > d.last_delivered_seq THEN excluded.version
        ELSE greatest(d.version, excluded.version)
    END,
    confirmed_at = excluded.confirmed_at
RETURNING channel_id, last_delivered_seq, confirmed_at;

-- name: GetSyncState :one
-- GetSyncState returns all that decides between a diff and a resync. The head is read before any message is, so
-- whatever happens after it has a later version. delivered_seq is null where the device has no record.
SELECT
    rs.channel_id,
    rs.joined_seq,
    h.high_water_seq,
    h.version,
    h.deleted_version,
    d.last_delivered_seq AS delivered_seq,
    d.version AS delivered_version,
    store_instance()::text AS store_instance
FROM channel_read_state rs
JOIN channel_head h ON h.channel_id = rs.channel_id
LEFT JOIN device_sync_state d
    ON d.user_id = rs.user_id AND d.device_id = @device_id AND d.channel_id = rs.channel_id
WHERE rs.user_id = @user_id AND rs.channel_id = @channel_id AND rs.member;

-- name: ListSyncStates :many
-- ListSyncStates is GetSyncState for a page of the person's channels, in the order of their ids.
SELECT
    rs.channel_id,
    rs.joined_seq,
    h.high_water_seq,
    h.version,
    h.deleted_version,
    d.last_delivered_seq AS delivered_seq,
    d.version AS delivered_version,
    store_instance()::text AS store_instance
FROM channel_read_state rs
JOIN channel_head h ON h.channel_id = rs.channel_id
LEFT JOIN device_sync_state d
    ON d.user_id = rs.user_id AND d.device_id = @device_id AND d.channel_id = rs.channel_id
WHERE rs.user_id = @user_id AND rs.channel_id > @after AND rs.member
ORDER BY rs.channel_id
LIMIT @page_size;

-- name: CountDeletions :many
-- CountDeletions tells, channel by channel, how many messages of a stretch (after, up_to] were deleted in a version
-- after since, to count_to at most.
SELECT
    given.channel_id::bigint AS channel_id,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM message m
            WHERE m.channel_id = given.channel_id
                AND m.deleted_version > 0
                AND m.deleted_version > given.since
                AND m.seq > given.after
                AND m.seq <= given.up_to
            LIMIT @count_to
        ) AS deleted
    ) AS deletions
FROM ROWS FROM (
    unnest(@channel_ids::bigint[]),
    unnest(@sinces::bigint[]),
    unnest(@afters::bigint[]),
    unnest(@up_tos::bigint[])
) AS given (channel_id, since, after, up_to)
ORDER BY given.channel_id;

-- name: ResetSyncState :exec
-- ResetSyncState drops a device's record of one channel.
DELETE FROM device_sync_state
WHERE user_id = @user_id AND device_id = @device_id AND channel_id = @channel_id;

-- name: DeleteSyncStates :exec
-- DeleteSyncStates drops all records of one device.
DELETE FROM device_sync_state
WHERE user_id = @user_id AND device_id = @device_id;
