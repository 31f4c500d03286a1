-- Channels for two people's lists of badges, one with few of them and one with all. The people have read each to
-- another point; in every tenth channel an unread message was deleted, in every seventh the newest names them both.
WITH listed AS (
    SELECT n, @badge_channel::bigint + n AS id, n % 10 = 0 AS has_deleted, n % 7 = 0 AS has_mention
    FROM generate_series(1, @all_badges::integer) AS n
),
channels AS (
    INSERT INTO channel (id, kind, name)
    SELECT id, 'GROUP', 'channel ' || n
    FROM listed
),
heads AS (
    INSERT INTO channel_head (
        channel_id, high_water_seq, version, activity, last_deleted_seq, deleted_version, member_count
    )
    SELECT
        id, 20, 21, nextval('activity'), CASE WHEN has_deleted THEN 19 ELSE 0 END,
        CASE WHEN has_deleted THEN 21 ELSE 0 END, CASE WHEN n <= @few_badges THEN 5 ELSE 4 END
    FROM listed
),
read_states AS (
    INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, joined_seq, member_index)
    SELECT person, id, n % 21, 0, person
    FROM listed, unnest(ARRAY[1, 2, 3, @few_reader::bigint, @all_reader::bigint]) AS person
    WHERE n <= @few_badges OR person <> @few_reader
),
mentions AS (
    INSERT INTO mention (user_id, channel_id, seq)
    SELECT person, id, 20
    FROM listed, unnest(ARRAY[@few_reader::bigint, @all_reader::bigint]) AS person
    WHERE has_mention AND (n <= @few_badges OR person <> @few_reader)
)
INSERT INTO message (channel_id, seq, id, sender_id, deleted_version, created_at, mentions, body)
SELECT
    id,
    seq,
    nextval('activity'),
    1 + seq % 3,
    CASE WHEN has_deleted AND seq = 19 THEN 21 ELSE 0 END,
    now(),
    CASE WHEN has_mention AND seq = 20 THEN ARRAY[@few_reader::bigint, @all_reader::bigint] ELSE '{}' END,
    CASE WHEN has_deleted AND seq = 19 THEN '' ELSE 'Message number ' || seq END
FROM listed, generate_series(1, 20) AS seq;
