-- name: GetNewlyUnread :one
-- GetNewlyUnread returns who wrote to a person since they acknowledged, newest first, to a limit, and the position up to
-- which that is all, of one moment. It reads the index alone, over as many entries as the limit.
SELECT
    coalesce(a.acknowledged, 0)::bigint AS acknowledged,
    a.acknowledged_at,
    l.position,
    l.generation,
    store_instance()::text AS store_instance,
    coalesce(written.senders, '{}')::bigint[] AS senders,
    coalesce(written.latest, '{}')::bigint[] AS latest
FROM lease l
LEFT JOIN user_activity a ON a.user_id = @user_id
CROSS JOIN LATERAL (
    SELECT array_agg(newest.sender) AS senders, array_agg(newest.latest) AS latest
    FROM (
        SELECT v.sender, v.latest
        FROM arrival v
        WHERE v.recipient = @user_id AND v.latest > coalesce(a.acknowledged, 0)
        ORDER BY v.latest DESC
        LIMIT @count_to
    ) AS newest
) AS written
WHERE l.partition = arrival_partition(@user_id);

-- name: Acknowledge :exec
-- Acknowledge moves what a person has been shown forward, to as_of or to the newest position that was given out, where
-- that is nearer, and never back. Whoever shows the count is told by an event.
WITH given AS (
    SELECT l.partition, least(coalesce(sqlc.narg('as_of')::bigint, l.position), l.position) AS position
    FROM lease l
    WHERE l.partition = arrival_partition(@user_id)
),
event AS (
    INSERT INTO arrival_event (partition, recipient)
    SELECT given.partition, @user_id
    FROM given
)
INSERT INTO user_activity AS u (user_id, acknowledged, acknowledged_at)
SELECT @user_id, given.position, clock_timestamp()
FROM given
ON CONFLICT (user_id) DO UPDATE
SET acknowledged = greatest(u.acknowledged, excluded.acknowledged), acknowledged_at = excluded.acknowledged_at;

-- name: RelayOutbox :one
-- RelayOutbox takes the oldest messages from the outbox and writes an event for each person to whom they count: in a
-- channel that had at most max_members then, all its members, but for those who have it muted and are not named;
-- elsewhere those who are named. Who joined later does not count, nor does the sender, nor for whom it was found out
-- before. It does nothing for one whose lease was taken over. Messages that somebody flushes for a person at the moment
-- are left for the next time.
WITH held AS (
    SELECT l.partition
    FROM lease l
    WHERE l.partition = -1 AND l.fence = @fence
    FOR UPDATE
),
taken AS (
    DELETE FROM outbox
    WHERE id IN (
        SELECT o.id
        FROM outbox o
        WHERE NOT o.parked AND EXISTS (SELECT FROM held)
        ORDER BY o.id
        LIMIT @batch_size
        FOR UPDATE SKIP LOCKED
    )
    RETURNING id, channel_id, seq, sender_id, member_count, mentions, everyone, flushed
),
brought_to_its_end AS (
    UPDATE lease l SET attempts = 0 FROM held WHERE l.partition = held.partition AND l.attempts > 0
),
events AS (
    INSERT INTO arrival_event (partition, recipient, sender)
    SELECT arrival_partition(counting.user_id), counting.user_id, taken.sender_id
    FROM taken
    CROSS JOIN LATERAL (
        SELECT rs.user_id
        FROM channel_read_state rs
        WHERE rs.channel_id = taken.channel_id
            AND taken.member_count <= @max_members::integer
            AND rs.member
            AND rs.user_id <> taken.sender_id
            AND rs.joined_seq < taken.seq
            AND (
                taken.everyone
                OR rs.user_id = ANY(taken.mentions)
                OR NOT (rs.muted OR taken.seq <= rs.muted_until_seq)
            )
        UNION ALL
        SELECT rs.user_id
        FROM channel_read_state rs
        WHERE rs.user_id = ANY(taken.mentions)
            AND rs.channel_id = taken.channel_id
            AND taken.member_count > @max_members::integer
            AND rs.member
            AND rs.joined_seq < taken.seq
    ) AS counting
    WHERE counting.user_id <> ALL(taken.flushed)
    ORDER BY taken.id
)
SELECT EXISTS (SELECT FROM held) AS held, (SELECT count(*) FROM taken) AS taken;

-- name: FlushOutbox :exec
-- FlushOutbox does the relay's work for one person in one channel, before they leave it or mute it: what came until then
-- counts. Where they mute it, only what does not name them: that counts afterwards, too. The rows stay for the others, and
-- say for whom the work is done: a relay that looked before this was committed finds them changed. They are locked in
-- their order, so that two who flush one channel cannot wait for one another.
WITH locked AS (
    SELECT o.id
    FROM outbox o
    WHERE o.channel_id = @channel_id
        AND NOT o.parked
        AND (o.member_count <= @max_members::integer OR (@user_id::bigint) = ANY(o.mentions))
        AND (
            @leaving::boolean
            OR NOT (
                (@user_id::bigint) = ANY(o.mentions)
                OR o.everyone AND o.member_count <= @max_members::integer
            )
        )
    ORDER BY o.id
    FOR UPDATE
),
waiting AS (
    UPDATE outbox o
    SET flushed = o.flushed || (@user_id::bigint)
    FROM locked
    WHERE o.id = locked.id
    RETURNING o.id, o.seq, o.sender_id, o.member_count, o.mentions, o.everyone
)
INSERT INTO arrival_event (partition, recipient, sender)
SELECT arrival_partition(rs.user_id), rs.user_id, waiting.sender_id
FROM waiting
JOIN channel_read_state rs ON rs.user_id = @user_id::bigint AND rs.channel_id = @channel_id AND rs.member
WHERE waiting.sender_id <> rs.user_id
    AND rs.joined_seq < waiting.seq
    AND (
        rs.user_id = ANY(waiting.mentions)
        OR waiting.member_count <= @max_members::integer
        AND (waiting.everyone OR NOT (rs.muted OR waiting.seq <= rs.muted_until_seq))
    )
ORDER BY waiting.id;

-- name: ListRecipients :many
-- ListRecipients returns to whom the oldest events of a partition are, acknowledges left aside.
SELECT DISTINCT first.recipient
FROM (
    SELECT e.recipient, e.sender
    FROM arrival_event e
    WHERE e.partition = @partition AND NOT e.parked
    ORDER BY e.partition, e.id
    LIMIT @batch_size
) AS first
WHERE first.sender IS NOT NULL
ORDER BY first.recipient;

-- name: StoreArrivals :one
-- StoreArrivals takes the oldest events of a partition, gives each a position, and stores the newest of each recipient
-- and sender. It returns what arrived, in the order of positions, and up to where those who acknowledged have been shown
-- everything. It does nothing for one whose lease was taken over. Positions rise strictly within a partition, and are about
-- the microseconds of the clock. The events are found as a stretch, so that the plan goes by key however many there are.
-- Where asked is given, messages to others are left for the next time. Messages to those online are taken and not stored.
WITH held AS (
    SELECT
        l.partition,
        greatest(l.position, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS base
    FROM lease l
    WHERE l.partition = @partition AND l.fence = @fence
    FOR UPDATE
),
batch AS (
    DELETE FROM arrival_event e
    USING held
    WHERE e.partition = @partition
        AND NOT e.parked
        AND e.id <= (
            SELECT max(first.id)
            FROM (
                SELECT f.id
                FROM arrival_event f
                WHERE f.partition = @partition AND NOT f.parked
                ORDER BY f.partition, f.id
                LIMIT @batch_size
            ) AS first
        )
        AND (
            e.sender IS NULL
            OR sqlc.narg('asked')::bigint[] IS NULL
            OR e.recipient = ANY(sqlc.narg('asked')::bigint[])
        )
    RETURNING e.id, e.recipient, e.sender
),
placed AS (
    SELECT batch.recipient, batch.sender, held.base + row_number() OVER (ORDER BY batch.id) AS position
    FROM batch, held
    WHERE batch.sender IS NOT NULL AND batch.recipient <> ALL(@online::bigint[])
),
newest AS (
    SELECT placed.recipient, placed.sender, max(placed.position) AS position
    FROM placed
    GROUP BY placed.recipient, placed.sender
),
stored AS (
    INSERT INTO arrival AS a (recipient, sender, latest)
    SELECT newest.recipient, newest.sender, newest.position
    FROM newest
    ORDER BY newest.recipient, newest.sender
    ON CONFLICT (recipient, sender) DO UPDATE
    SET latest = excluded.latest
    WHERE excluded.latest > a.latest
),
moved AS (
    UPDATE lease l
    SET position = held.base + (SELECT count(*) FROM placed), attempts = 0
    FROM held
    WHERE l.partition = held.partition
),
shown AS (
    SELECT viewers.user_id, coalesce(u.acknowledged, 0) AS acknowledged
    FROM (SELECT DISTINCT batch.recipient AS user_id FROM batch WHERE batch.sender IS NULL) AS viewers
    LEFT JOIN user_activity u ON u.user_id = viewers.user_id
)
SELECT
    EXISTS (SELECT FROM held) AS held,
    coalesce((SELECT held.base + (SELECT count(*) FROM placed) FROM held), 0)::bigint AS position,
    (SELECT count(*) FROM batch) AS taken,
    ARRAY(SELECT placed.recipient FROM placed ORDER BY placed.position)::bigint[] AS recipients,
    ARRAY(SELECT placed.sender FROM placed ORDER BY placed.position)::bigint[] AS senders,
    ARRAY(SELECT placed.position FROM placed ORDER BY placed.position)::bigint[] AS positions,
    ARRAY(SELECT shown.user_id FROM shown ORDER BY shown.user_id)::bigint[] AS viewers,
    ARRAY(SELECT shown.acknowledged FROM shown ORDER BY shown.user_id)::bigint[] AS acknowledged;

-- name: BeginAttempt :one
-- BeginAttempt counts one more attempt at what failed, before it is made: if it ends the process, it has been counted.
UPDATE lease
SET attempts = attempts + 1
WHERE partition = @partition AND fence = @fence
RETURNING attempts;

-- name: ParkEvent :execrows
-- ParkEvent sets a partition's oldest event aside, for one whose lease was not taken over.
UPDATE arrival_event first
SET parked = true
WHERE first.partition = @partition
    AND EXISTS (SELECT FROM lease l WHERE l.partition = @partition AND l.fence = @fence FOR UPDATE)
    AND first.id = (SELECT e.id FROM arrival_event e WHERE e.partition = @partition AND NOT e.parked ORDER BY e.id LIMIT 1);

-- name: ParkMessage :execrows
-- ParkMessage sets the outbox's oldest message aside, for one whose lease was not taken over.
UPDATE outbox first
SET parked = true
WHERE EXISTS (SELECT FROM lease l WHERE l.partition = -1 AND l.fence = @fence FOR UPDATE)
    AND first.id = (SELECT o.id FROM outbox o WHERE NOT o.parked ORDER BY o.id LIMIT 1);

-- name: CountParked :one
-- CountParked counts what was set aside.
SELECT (
    (SELECT count(*) FROM outbox WHERE outbox.parked) + (SELECT count(*) FROM arrival_event WHERE arrival_event.parked)
)::bigint AS parked;

-- name: ListPending :many
-- ListPending returns those of the partitions that have something to do. The order in the looks has them go by key.
SELECT mine.partition::smallint AS partition
FROM unnest(@partitions::smallint[]) AS mine (partition)
WHERE CASE
    WHEN mine.partition = -1 THEN (SELECT o.id FROM outbox o WHERE NOT o.parked ORDER BY o.id LIMIT 1) IS NOT NULL
    ELSE (
        SELECT e.id
        FROM arrival_event e
        WHERE e.partition = mine.partition AND NOT e.parked
        ORDER BY e.partition, e.id
        LIMIT 1
    ) IS NOT NULL
END
ORDER BY mine.partition;

-- name: KeepWorker :one
-- KeepWorker notes that a worker lives, forgets those long dead, and returns how many live, and which store this is.
WITH dead AS (
    DELETE FROM worker w WHERE w.seen_at < now() - interval '1 minute' AND w.id <> @id
),
me AS (
    INSERT INTO worker AS w (id, seen_at) VALUES (@id, now())
    ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
)
SELECT 1 + count(*) AS living, (SELECT store_epoch())::text AS store_epoch
FROM worker other
WHERE other.id <> @id AND other.seen_at > now() - (@within_ms::bigint) * interval '1 millisecond';

-- name: ForgetWorker :exec
-- ForgetWorker gives a worker's leases back, at its end: those that are settled as free, the others as ended.
WITH gone AS (
    DELETE FROM worker w WHERE w.id = @id
)
UPDATE lease l
SET until = CASE WHEN l.partition = ANY(@settled::smallint[]) THEN '-infinity' ELSE now() END
WHERE l.owner = @id AND l.until > now();

-- name: RenewLeases :many
-- RenewLeases keeps the leases that a worker has, at most so many, and gives back the others: those that are settled as
-- free, the rest as ended.
WITH mine AS (
    SELECT l.partition, row_number() OVER (ORDER BY l.partition) AS number
    FROM lease l
    WHERE l.owner = @owner AND l.until > '-infinity'
)
UPDATE lease l
SET until = CASE
    WHEN mine.number <= @most::bigint THEN now() + (@length_ms::bigint) * interval '1 millisecond'
    WHEN l.partition = ANY(@settled::smallint[]) THEN '-infinity'
    ELSE now()
END
FROM mine
WHERE l.partition = mine.partition AND l.owner = @owner
RETURNING l.partition, l.fence, (mine.number <= @most::bigint)::boolean AS kept;

-- name: ClaimLeases :many
-- ClaimLeases takes free leases over, at most so many. Where one was not given back, copies may lack what its owner stored
-- last, so they are of an older generation from now on; and if there is something to do, that counts as an attempt: the
-- owner may have died of it.
UPDATE lease l
SET
    owner = @owner,
    until = now() + (@length_ms::bigint) * interval '1 millisecond',
    fence = l.fence + 1,
    generation = l.generation + CASE WHEN l.until = '-infinity' THEN 0 ELSE 1 END,
    attempts = l.attempts + CASE
        WHEN l.until = '-infinity' THEN 0
        WHEN l.partition = -1 THEN (SELECT count(*) FROM (SELECT FROM outbox o WHERE NOT o.parked LIMIT 1) AS waiting)
        ELSE (
            SELECT count(*)
            FROM (SELECT FROM arrival_event e WHERE e.partition = l.partition AND NOT e.parked ORDER BY e.partition, e.id LIMIT 1) AS waiting
        )
    END
WHERE l.partition IN (
    SELECT free.partition
    FROM lease free
    WHERE free.until < now()
    ORDER BY free.partition
    LIMIT @most
    FOR UPDATE SKIP LOCKED
)
RETURNING l.partition, l.fence, l.attempts, l.generation, l.position;

-- name: BeginGeneration :one
-- BeginGeneration makes all copies of a partition old, for one whose lease was not taken over.
UPDATE lease
SET generation = generation + 1
WHERE partition = @partition AND fence = @fence
RETURNING generation, position;

-- name: ListPositions :many
-- ListPositions returns the newest position that was given out in each partition of recipients.
SELECT partition, generation, position
FROM lease
WHERE partition >= 0
ORDER BY partition;
