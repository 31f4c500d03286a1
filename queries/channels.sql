-- name: InsertChannel :one
-- InsertChannel makes a channel, with an id of ours where the creator gives none. It returns no row where the id is
-- taken; a pair that has its direct channel already is a violation of channel_direct_pair_once.
INSERT INTO channel (id, kind, name, creator_id, direct_low, direct_high)
VALUES (
    coalesce(sqlc.narg('id')::bigint, nextval('channel_id')),
    @kind,
    @name,
    sqlc.narg('creator_id'),
    sqlc.narg('direct_low'),
    sqlc.narg('direct_high')
)
ON CONFLICT ON CONSTRAINT channel_pkey DO NOTHING
RETURNING id;

-- name: GetDirectChannel :one
-- GetDirectChannel finds the direct channel of two people.
SELECT id
FROM channel
WHERE direct_low = @direct_low::bigint AND direct_high = @direct_high::bigint;

-- name: GetChannel :one
-- GetChannel returns a channel as nobody in particular sees it: a direct one under the name of its first person.
SELECT
    c.id,
    c.kind,
    c.name,
    coalesce(other.id, 0)::bigint AS other_id,
    coalesce(other.display_name, '')::text AS other_name,
    h.member_count,
    h.high_water_seq,
    0::bigint AS joined_seq,
    false AS peer_shares,
    0::bigint AS peer_read_seq
FROM channel c
JOIN channel_head h ON h.channel_id = c.id
LEFT JOIN users other ON other.id = c.direct_low
WHERE c.id = @channel_id;

-- name: ListChannels :many
-- ListChannels returns those of the channels that the person is a member of, as they see them. How far the other one of
-- a direct channel has read is there to be seen where both share receipts.
SELECT
    c.id,
    c.kind,
    c.name,
    coalesce(other.id, 0)::bigint AS other_id,
    coalesce(other.display_name, '')::text AS other_name,
    h.member_count,
    h.high_water_seq,
    rs.joined_seq,
    coalesce(rs.shares_receipts AND peer.shares_receipts, false)::boolean AS peer_shares,
    coalesce(peer.receipt_seq, 0)::bigint AS peer_read_seq
FROM channel_read_state rs
JOIN channel c ON c.id = rs.channel_id
JOIN channel_head h ON h.channel_id = rs.channel_id
LEFT JOIN users other
    ON other.id = CASE WHEN c.direct_low = @user_id::bigint THEN c.direct_high ELSE c.direct_low END
LEFT JOIN channel_read_state peer ON peer.user_id = other.id AND peer.channel_id = c.id AND peer.member
WHERE rs.user_id = @user_id::bigint AND rs.channel_id = ANY(@channel_ids::bigint[]) AND rs.member
ORDER BY c.id;
