-- Two channels that differ in nothing but their size. Everybody has read everything.
WITH sized (id, members) AS (
    VALUES (@small_channel::bigint, @small_members::integer), (@large_channel::bigint, @large_members::integer)
),
channels AS (
    INSERT INTO channel (id, kind, name)
    SELECT id, 'GROUP', 'of ' || members
    FROM sized
),
heads AS (
    INSERT INTO channel_head (channel_id, high_water_seq, version, activity, member_count)
    SELECT id, @read_up_to, @read_up_to, nextval('activity'), members
    FROM sized
),
read_states AS (
    INSERT INTO channel_read_state (user_id, channel_id, last_read_seq, receipt_seq, joined_seq, member_index)
    SELECT n, id, @read_up_to, @read_up_to, 0, n - 1
    FROM sized, generate_series(1, members) AS n
)
INSERT INTO message (channel_id, seq, id, sender_id, created_at, body)
SELECT id, n, nextval('activity'), @sender, now(), 'Message number ' || n
FROM sized, generate_series(1, @read_up_to::bigint) AS n;
