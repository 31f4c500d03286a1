-- A channel with a history, which a few people write, and the latecomer has not read. Every so often a message was
-- deleted, all of them after the last was sent.
WITH channels AS (
    INSERT INTO channel (id, kind, name)
    VALUES (@long_channel, 'GROUP', 'long')
),
heads AS (
    INSERT INTO channel_head (
        channel_id, high_water_seq, version, activity, last_deleted_seq, deleted_version, member_count
    )
    VALUES (
        @long_channel, @messages::bigint, @messages::bigint + @deletions::bigint, nextval('activity'),
        @messages::bigint / @deletions::bigint * @deletions::bigint, @messages::bigint + @deletions::bigint, 4
    )
),
read_states AS (
    INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, joined_seq, member_index)
    SELECT person, @long_channel, 0, 0, person
    FROM unnest(ARRAY[1, 2, 3, @latecomer::bigint]) AS person
),
history AS (
    SELECT n, CASE WHEN n % (@messages::bigint / @deletions::bigint) = 0 THEN n / (@messages::bigint / @deletions::bigint) ELSE 0 END AS deletion
    FROM generate_series(1, @messages::bigint) AS n
)
INSERT INTO message (channel_id, seq, id, sender_id, deleted_version, created_at, body)
SELECT
    @long_channel,
    n,
    nextval('activity'),
    1 + n % 3,
    CASE WHEN deletion > 0 THEN @messages::bigint + deletion ELSE 0 END,
    now() - (@messages::bigint - n) * interval '1 second',
    CASE WHEN deletion > 0 THEN '' ELSE 'Message number ' || n || ' of a long history, as long as people write.' END
FROM history;
