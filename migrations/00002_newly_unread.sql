-- +goose Up

-- What a person has not been shown yet: who wrote to them, and when last, as positions. A row is made by the first
-- message of a sender and lives on, so the table grows with pairs of people, not with messages.
CREATE TABLE arrival (
    recipient bigint NOT NULL,
    sender    bigint NOT NULL,
    latest    bigint NOT NULL,
    CONSTRAINT arrival_pkey PRIMARY KEY (recipient, sender)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, vacuum_index_cleanup = on);

-- The count is a scan of this index alone, over those who wrote since the acknowledge.
CREATE INDEX arrival_latest ON arrival (recipient, latest, sender);

COMMENT ON COLUMN arrival.latest IS 'Position of the sender''s latest message that counts; positions rise within a partition of recipients.';

CREATE TABLE user_activity (
    user_id         bigint      NOT NULL,
    acknowledged    bigint      NOT NULL,
    acknowledged_at timestamptz NOT NULL,
    CONSTRAINT user_activity_pkey PRIMARY KEY (user_id)
) WITH (fillfactor = 80);

COMMENT ON COLUMN user_activity.acknowledged IS 'Arrivals up to this position have been shown.';

-- One row for each message that was sent, until the relay has found out to whom it counts.
CREATE TABLE outbox (
    id           bigint  GENERATED ALWAYS AS IDENTITY,
    channel_id   bigint  NOT NULL,
    seq          bigint  NOT NULL,
    sender_id    bigint  NOT NULL,
    member_count integer NOT NULL,
    mentions     bigint[] NOT NULL DEFAULT '{}',
    everyone     boolean NOT NULL DEFAULT false,
    flushed      bigint[] NOT NULL DEFAULT '{}',
    parked       boolean NOT NULL DEFAULT false,
    CONSTRAINT outbox_pkey PRIMARY KEY (id)
);

CREATE INDEX outbox_channel ON outbox (channel_id, id);

COMMENT ON COLUMN outbox.member_count IS 'Members when it was sent: what joins later changes nothing.';
COMMENT ON COLUMN outbox.flushed IS 'For whom it was found out already, because they left or muted the channel.';
COMMENT ON COLUMN outbox.parked IS 'It failed each time it was tried, and waits for somebody to look at it.';

-- One row for each message and person to whom it counts, until it is in their arrivals; and one without a sender for
-- each acknowledge, for whoever shows the count.
CREATE TABLE arrival_event (
    partition smallint NOT NULL,
    id        bigint   GENERATED ALWAYS AS IDENTITY,
    recipient bigint   NOT NULL,
    sender    bigint,
    parked    boolean  NOT NULL DEFAULT false,
    CONSTRAINT arrival_event_pkey PRIMARY KEY (partition, id)
);

-- What was set aside must not be walked over again and again.
CREATE INDEX arrival_event_waiting ON arrival_event (partition, id) WHERE NOT parked;

COMMENT ON COLUMN arrival_event.sender IS 'Null: the recipient has acknowledged.';

-- Who may write for a partition of recipients, and for the relay, whose partition is -1. A fence rises with each change
-- of hands, so that one who was thought dead writes nothing any more.
CREATE TABLE lease (
    partition smallint    NOT NULL,
    owner     text        NOT NULL DEFAULT '',
    until     timestamptz NOT NULL DEFAULT '-infinity',
    fence     bigint      NOT NULL DEFAULT 0,
    position  bigint      NOT NULL DEFAULT 0,
    attempts  integer     NOT NULL DEFAULT 0,
    CONSTRAINT lease_pkey PRIMARY KEY (partition)
) WITH (fillfactor = 50);

COMMENT ON COLUMN lease.position IS 'The largest position that was given out.';
COMMENT ON COLUMN lease.attempts IS 'How often the batch that is next was begun, and not brought to its end.';

INSERT INTO lease (partition) SELECT generate_series(-1, 63);

CREATE TABLE worker (
    id      text        NOT NULL,
    seen_at timestamptz NOT NULL,
    CONSTRAINT worker_pkey PRIMARY KEY (id)
);

ALTER TABLE channel_read_state ADD COLUMN muted_until_seq bigint NOT NULL DEFAULT 0;

COMMENT ON COLUMN channel_read_state.muted_until_seq IS 'The head when it was unmuted last: what came before that, came muted.';

-- Spreads people over the partitions, however their ids are made: all groups of six bits of an id, by XOR.
-- +goose StatementBegin
CREATE FUNCTION arrival_partition(id bigint) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ((id # (id >> 6) # (id >> 12) # (id >> 18) # (id >> 24) # (id >> 30) # (id >> 36) # (id >> 42) # (id >> 48)
        # (id >> 54) # (id >> 60)) & 63)::smallint
$$;
-- +goose StatementEnd

-- +goose Down

DROP FUNCTION arrival_partition;
ALTER TABLE channel_read_state DROP COLUMN muted_until_seq;
DROP TABLE worker, lease, arrival_event, outbox, user_activity, arrival;
