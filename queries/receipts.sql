-- name: GetReceipt :one
-- GetReceipt counts who has read a message, as a member sees it: nobody, where they do not share receipts themselves.
-- To one who is not in the channel it returns no row. visible tells whether there is such a message for them.
SELECT
    (m.seq IS NOT NULL)::boolean AS visible,
    counted.audience,
    counted.readers
FROM channel_read_state rs
LEFT JOIN message m ON m.channel_id = rs.channel_id AND m.seq = @seq AND m.seq > rs.joined_seq
CROSS JOIN LATERAL (
    SELECT count(*) AS audience, count(*) FILTER (WHERE a.has_read) AS readers
    FROM receipt_audience a
    WHERE a.channel_id = m.channel_id AND a.seq = m.seq AND rs.shares_receipts
) AS counted
WHERE rs.user_id = @user_id AND rs.channel_id = @channel_id AND rs.member;

-- name: ListAudience :many
-- ListAudience returns a page of those who have read a message, or of those who have not, in the order of their ids. To
-- one who is not to know it is empty.
SELECT
    a.user_id AS id,
    coalesce((SELECT u.display_name FROM users u WHERE u.id = a.user_id), '')::text AS display_name
FROM receipt_audience a
WHERE a.channel_id = @channel_id
    AND a.seq = @seq
    AND a.has_read = @has_read::boolean
    AND a.user_id > @after
    AND EXISTS (
        SELECT FROM channel_read_state rs
        WHERE rs.user_id = @user_id AND rs.channel_id = @channel_id
            AND rs.member AND rs.joined_seq < @seq AND rs.shares_receipts
    )
ORDER BY a.user_id
LIMIT @page_size;

-- name: WatchReceipt :one
-- WatchReceipt returns all that it takes to follow who has read a message: how many, and the member_index of each who
-- has not. It tells which of the viewers are members and of those, which may not know of the message and which do not
-- share receipts.
SELECT
    count(*)::integer AS audience,
    coalesce(array_agg(a.member_index) FILTER (WHERE NOT a.has_read), '{}')::integer[] AS unread,
    coalesce((SELECT h.members_ever FROM channel_head h WHERE h.channel_id = @channel_id), 0)::integer AS members_ever,
    coalesce((
        SELECT array_agg(rs.user_id)
        FROM channel_read_state rs
        WHERE rs.user_id = ANY(@viewers::bigint[]) AND rs.channel_id = @channel_id AND rs.member
    ), '{}')::bigint[] AS members,
    coalesce((
        SELECT array_agg(rs.user_id)
        FROM channel_read_state rs
        WHERE rs.user_id = ANY(@viewers::bigint[]) AND rs.channel_id = @channel_id AND rs.member
            AND NOT (rs.joined_seq < @seq
                AND EXISTS (SELECT FROM message m WHERE m.channel_id = @channel_id AND m.seq = @seq))
    ), '{}')::bigint[] AS unaware,
    coalesce((
        SELECT array_agg(rs.user_id)
        FROM channel_read_state rs
        WHERE rs.user_id = ANY(@viewers::bigint[]) AND rs.channel_id = @channel_id AND rs.member
            AND NOT rs.shares_receipts
    ), '{}')::bigint[] AS hiding
FROM receipt_audience a
WHERE a.channel_id = @channel_id AND a.seq = @seq;

-- name: SetSharing :exec
-- SetSharing has a person share receipts or not, and holds up whoever is about to make them a member. Memberships that
-- there are follow by SpreadSharing, in the same transaction.
INSERT INTO users AS u (id, shares_read_receipts)
VALUES (@id, @share)
ON CONFLICT (id) DO UPDATE
SET shares_read_receipts = excluded.shares_read_receipts
WHERE u.shares_read_receipts <> excluded.shares_read_receipts;

-- name: SpreadSharing :many
-- SpreadSharing has a person's memberships follow what they share, and returns their channels. It locks rows in the
-- order of their keys, as all bulk writes do.
WITH theirs AS (
    SELECT rs.channel_id
    FROM channel_read_state rs
    WHERE rs.user_id = @user_id AND rs.member
    ORDER BY rs.channel_id
    FOR NO KEY UPDATE
),
changed AS (
    UPDATE channel_read_state rs
    SET shares_receipts = @share
    FROM theirs
    WHERE rs.user_id = @user_id AND rs.channel_id = theirs.channel_id AND rs.shares_receipts <> @share
)
SELECT theirs.channel_id FROM theirs ORDER BY theirs.channel_id;

-- name: GetSharing :one
-- GetSharing tells whether a person shares receipts. Of somebody unknown it returns no row.
SELECT shares_read_receipts
FROM users
WHERE id = @id;
