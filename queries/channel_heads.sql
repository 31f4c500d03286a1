-- name: InsertChannelHead :exec
-- InsertChannelHead gives a new channel its head. Its first members have the first indexes.
INSERT INTO channel_head (channel_id, version, activity, member_count, members_ever)
VALUES (@channel_id, 1, nextval('activity'), @member_count, @member_count);

-- name: LockChannelHead :one
-- LockChannelHead holds up every other writer of the channel until the transaction ends, and returns where it stands.
SELECT c.kind, c.creator_id, h.members_ever
FROM channel_head h
JOIN channel c ON c.id = h.channel_id
WHERE h.channel_id = @channel_id
FOR UPDATE OF h;

-- name: ChangeMemberCount :one
-- ChangeMemberCount follows a change of members, in a new version, which it returns. newcomers are those who were never
-- in the channel before.
UPDATE channel_head
SET
    member_count = member_count + @change::integer,
    members_ever = members_ever + @newcomers::integer,
    version = version + 1
WHERE channel_id = @channel_id
RETURNING version;

-- name: ListHeadVersions :many
-- ListHeadVersions returns the versions of some channels' heads.
SELECT channel_id, version
FROM channel_head
WHERE channel_id = ANY(@channel_ids::bigint[])
ORDER BY channel_id;
