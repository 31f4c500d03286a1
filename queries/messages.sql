-- name: SendMessage :one
-- SendMessage takes the channel's next seq, writes the message, and marks the sender read up to it, or does nothing.
-- It returns no row where the sender is not a member. One who is removed while the statement waits for the head
-- leaves sent_by empty, and the violated NOT NULL takes all of it back, the seq too; a client_message_id used
-- before does the same by message_client_message_id_once. mentions are kept whoever is named: to one who is no member,
-- or joins later, they are from before joining, and count for nothing.
WITH head AS (
    UPDATE channel_head h
    SET
        high_water_seq = h.high_water_seq + 1,
        version = h.version + 1,
        activity = nextval('activity'),
        last_everyone_seq = CASE WHEN @mentions_everyone::boolean THEN h.high_water_seq + 1 ELSE h.last_everyone_seq END
    WHERE h.channel_id = @channel_id
        AND EXISTS (
            SELECT FROM channel_read_state rs
            WHERE rs.user_id = @sender_id AND rs.channel_id = @channel_id AND rs.member
        )
    RETURNING h.channel_id, h.high_water_seq, h.version, h.activity, h.member_count
),
sent_by AS (
    UPDATE channel_read_state rs
    SET
        last_read_seq = head.high_water_seq,
        receipt_seq = head.high_water_seq,
        last_sent_seq = head.high_water_seq,
        version = rs.version + 1,
        moved_at = clock_timestamp(),
        moved_by = 'SENT',
        moved_device = NULL
    FROM head
    WHERE rs.user_id = @sender_id AND rs.channel_id = @channel_id AND rs.member
    RETURNING rs.user_id, rs.joined_seq, rs.version, rs.read_epoch, rs.muted, rs.member_index
),
mentioned AS (
    INSERT INTO mention (user_id, channel_id, seq)
    SELECT named.user_id, head.channel_id, head.high_water_seq
    FROM head, unnest(@mentions::bigint[]) AS named (user_id)
    WHERE NOT @mentions_everyone::boolean
    RETURNING user_id
),
queued AS (
    INSERT INTO outbox (channel_id, seq, sender_id, member_count, mentions, everyone)
    SELECT head.channel_id, head.high_water_seq, @sender_id, head.member_count, @mentions, @mentions_everyone
    FROM head
),
sent AS (
    INSERT INTO message (
        channel_id, seq, id, sender_id, created_at, mentions_everyone, client_message_id, mentions, body
    )
    SELECT
        head.channel_id,
        head.high_water_seq,
        head.activity,
        (SELECT sent_by.user_id FROM sent_by),
        clock_timestamp(),
        @mentions_everyone,
        sqlc.narg('client_message_id'),
        @mentions,
        @body
    FROM head
    RETURNING created_at
)
SELECT
    head.high_water_seq AS seq,
    head.activity AS id,
    head.version AS head_version,
    sent.created_at,
    sent_by.joined_seq,
    sent_by.version AS read_state_version,
    sent_by.read_epoch,
    sent_by.muted,
    sent_by.member_index,
    coalesce((SELECT u.display_name FROM users u WHERE u.id = @sender_id), '')::text AS sender_name
FROM head, sent, sent_by;

-- name: GetMessageByClientID :one
-- GetMessageByClientID finds what a sender's earlier try wrote.
SELECT m.channel_id, m.seq, m.id, m.sender_id, m.deleted_version, m.created_at, m.mentions_everyone,
    m.client_message_id, m.mentions, m.body, coalesce(u.display_name, '')::text AS sender_name
FROM message m
LEFT JOIN users u ON u.id = m.sender_id
WHERE m.channel_id = @channel_id AND m.sender_id = @sender_id AND m.client_message_id = @client_message_id::text;

-- name: GetMessage :one
-- GetMessage returns one message, deleted or not.
SELECT m.channel_id, m.seq, m.id, m.sender_id, m.deleted_version, m.created_at, m.mentions_everyone,
    m.client_message_id, m.mentions, m.body, coalesce(u.display_name, '')::text AS sender_name
FROM message m
LEFT JOIN users u ON u.id = m.sender_id
WHERE m.channel_id = @channel_id AND m.seq = @seq;

-- name: ListMessagesAfter :many
-- ListMessagesAfter returns the oldest messages of a stretch (after, up_to], deleted ones as what remains of them. The
-- names are looked up one by one: a join could be planned as one with the whole stretch.
SELECT m.channel_id, m.seq, m.id, m.sender_id, m.deleted_version, m.created_at, m.mentions_everyone,
    m.client_message_id, m.mentions, m.body,
    coalesce((SELECT u.display_name FROM users u WHERE u.id = m.sender_id), '')::text AS sender_name
FROM message m
WHERE m.channel_id = @channel_id AND m.seq > @after AND m.seq <= @up_to
ORDER BY m.seq
LIMIT @page_size;

-- name: ListMessagesBefore :many
-- ListMessagesBefore returns the newest messages of a stretch (after, before), newest first.
SELECT m.channel_id, m.seq, m.id, m.sender_id, m.deleted_version, m.created_at, m.mentions_everyone,
    m.client_message_id, m.mentions, m.body,
    coalesce((SELECT u.display_name FROM users u WHERE u.id = m.sender_id), '')::text AS sender_name
FROM message m
WHERE m.channel_id = @channel_id AND m.seq > @after AND m.seq < @before
ORDER BY m.seq DESC
LIMIT @page_size;

-- name: ListDeletedSeqs :many
-- ListDeletedSeqs returns which messages of a stretch (after, up_to] were deleted in a version after since.
SELECT seq
FROM message
WHERE channel_id = @channel_id
    AND deleted_version > 0
    AND deleted_version > @since::bigint
    AND seq > @after
    AND seq <= @up_to
ORDER BY deleted_version
LIMIT @page_size;

-- name: DeleteMessage :one
-- DeleteMessage takes a message's words and mentions away, and stamps it with a new version of its channel's head,
-- which the caller has locked, and returns it. A message deleted before is left as it is, and no row is returned.
WITH head AS (
    UPDATE channel_head h
    SET
        version = h.version + 1,
        deleted_version = h.version + 1,
        last_deleted_seq = greatest(h.last_deleted_seq, @seq::bigint)
    WHERE h.channel_id = @channel_id
        AND EXISTS (
            SELECT FROM message m WHERE m.channel_id = @channel_id AND m.seq = @seq AND m.deleted_version = 0
        )
    RETURNING h.version
),
unmentioned AS (
    DELETE FROM mention n
    USING message m
    WHERE m.channel_id = @channel_id
        AND m.seq = @seq
        AND n.user_id = ANY(m.mentions)
        AND n.channel_id = m.channel_id
        AND n.seq = m.seq
)
UPDATE message m
SET deleted_version = head.version, body = '', mentions = '{}', mentions_everyone = false
FROM head
WHERE m.channel_id = @channel_id AND m.seq = @seq
RETURNING head.version;
