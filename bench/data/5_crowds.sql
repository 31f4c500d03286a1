-- Two crowds, a large one and a small one. All of a crowd are in one channel, and each in another with its sender alone.
-- They have read each to another point.
WITH viewers AS (
    SELECT n, @first_viewer::bigint + n AS id, @crowd_channel::bigint + (n >= @large_crowd::integer)::integer AS shared
    FROM generate_series(0, @large_crowd::integer + @small_crowd::integer - 1) AS n
),
people AS (
    INSERT INTO users (id, display_name)
    SELECT id, 'Viewer number ' || n
    FROM viewers
    UNION ALL
    SELECT @crowd_sender, 'Sender'
),
sized AS (
    SELECT shared AS id, count(*) + 1 AS members
    FROM viewers
    GROUP BY shared
    UNION ALL
    SELECT id, 2
    FROM viewers
),
channels AS (
    INSERT INTO channel (id, kind, name)
    SELECT id, 'GROUP', 'crowd channel ' || id
    FROM sized
),
heads AS (
    INSERT INTO channel_head (channel_id, high_water_seq, version, activity, member_count)
    SELECT id, 5, 5, nextval('activity'), members
    FROM sized
),
read_states AS (
    INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, joined_seq, member_index)
    SELECT id, shared, n % 6, 0, id
    FROM viewers
    UNION ALL
    SELECT id, id, n % 5, 0, id
    FROM viewers
    UNION ALL
    SELECT @crowd_sender, id, 5, 0, @crowd_sender
    FROM sized
)
INSERT INTO message (channel_id, seq, id, sender_id, created_at, body)
SELECT id, n, nextval('activity'), @crowd_sender, now(), 'Message number ' || n
FROM sized, generate_series(1, 5) AS n;
