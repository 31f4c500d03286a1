-- +goose Up

CREATE TABLE users (
    id           bigint      NOT NULL,
    display_name text        NOT NULL DEFAULT '',
    created_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_id_positive CHECK (id > 0)
);

COMMENT ON COLUMN users.display_name IS 'What others see; empty until a token has told the name.';

-- Given out to channels whose creator names no id; far from the small numbers that products give out themselves.
CREATE SEQUENCE channel_id START 1000000000000;

CREATE TABLE channel (
    id          bigint      NOT NULL,
    kind        text        NOT NULL,
    name        text        NOT NULL DEFAULT '',
    creator_id  bigint,
    direct_low  bigint,
    direct_high bigint,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT channel_pkey PRIMARY KEY (id),
    CONSTRAINT channel_id_positive CHECK (id > 0),
    CONSTRAINT channel_kind_known CHECK (kind IN ('DIRECT', 'GROUP')),
    CONSTRAINT channel_direct_has_pair CHECK ((kind = 'DIRECT') = (direct_low IS NOT NULL AND direct_high IS NOT NULL)),
    CONSTRAINT channel_direct_pair_ordered CHECK (direct_low < direct_high),
    CONSTRAINT channel_direct_pair_once UNIQUE (direct_low, direct_high)
);

COMMENT ON COLUMN channel.creator_id IS 'Who made it and may remove others; null where a service made it.';
COMMENT ON COLUMN channel.direct_low IS 'The smaller id of the two people of a direct channel.';
COMMENT ON COLUMN channel.direct_high IS 'The larger id of the two people of a direct channel.';

-- Message ids, and the order of the latest activity among channels.
CREATE SEQUENCE activity;

-- The one row that a channel's writers queue up for. seq and version are given out under its lock, so that their
-- order is the order of commits. No column here may be indexed: the row changes with each send and must change in
-- place.
CREATE TABLE channel_head (
    channel_id        bigint  NOT NULL,
    high_water_seq    bigint  NOT NULL DEFAULT 0,
    version           bigint  NOT NULL DEFAULT 0,
    activity          bigint  NOT NULL,
    last_deleted_seq  bigint  NOT NULL DEFAULT 0,
    deleted_version   bigint  NOT NULL DEFAULT 0,
    last_everyone_seq bigint  NOT NULL DEFAULT 0,
    member_count      integer NOT NULL DEFAULT 0,
    CONSTRAINT channel_head_pkey PRIMARY KEY (channel_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

COMMENT ON COLUMN channel_head.high_water_seq IS 'Seq of the newest message; 0 before the first.';
COMMENT ON COLUMN channel_head.version IS 'Rises with each send, delete and change of members.';
COMMENT ON COLUMN channel_head.activity IS 'Id of the newest message, or a number from the same sequence taken at creation.';
COMMENT ON COLUMN channel_head.last_deleted_seq IS 'Largest seq of a deleted message; 0 where none is deleted.';
COMMENT ON COLUMN channel_head.deleted_version IS 'Version of the newest deletion; 0 where none is deleted.';
COMMENT ON COLUMN channel_head.last_everyone_seq IS 'Largest seq of a message that mentions everyone; 0 where none does.';

-- A person in a channel: membership and cursor. The row is made when they join and kept when they leave, so that
-- its version never starts again. No foreign keys: a check at each send would lock, and so write, the parent row.
CREATE TABLE channel_read_state (
    user_id       bigint      NOT NULL,
    channel_id    bigint      NOT NULL,
    last_read_seq bigint      NOT NULL,
    receipt_seq   bigint      NOT NULL DEFAULT 0,
    joined_seq    bigint      NOT NULL,
    last_sent_seq bigint      NOT NULL DEFAULT 0,
    version       bigint      NOT NULL DEFAULT 0,
    moved_at      timestamptz NOT NULL DEFAULT now(),
    read_epoch    integer     NOT NULL DEFAULT 0,
    member        boolean     NOT NULL DEFAULT true,
    muted         boolean     NOT NULL DEFAULT false,
    moved_by      text        NOT NULL DEFAULT 'JOINED',
    moved_device  text,
    CONSTRAINT channel_read_state_pkey PRIMARY KEY (user_id, channel_id),
    CONSTRAINT channel_read_state_not_before_joining CHECK (last_read_seq >= joined_seq AND joined_seq >= 0),
    CONSTRAINT channel_read_state_moved_by_known CHECK (moved_by IN ('JOINED', 'MARK_READ', 'MARK_UNREAD', 'SENT'))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- The badge list reads one person's rows: CLUSTER, run in a quiet hour, lays them side by side.
ALTER TABLE channel_read_state CLUSTER ON channel_read_state_pkey;

CREATE INDEX channel_read_state_members ON channel_read_state (channel_id, user_id) WHERE member;

COMMENT ON COLUMN channel_read_state.last_read_seq IS 'The cursor: has read up to here.';
COMMENT ON COLUMN channel_read_state.receipt_seq IS 'The furthest ever read; not moved by joining, nor back by mark unread.';
COMMENT ON COLUMN channel_read_state.joined_seq IS 'The head at joining: nothing up to it is counted, listed or delivered.';
COMMENT ON COLUMN channel_read_state.last_sent_seq IS 'Seq of the newest message they sent; 0 where none.';
COMMENT ON COLUMN channel_read_state.version IS 'Rises with each move of the cursor, mute, join and leave.';
COMMENT ON COLUMN channel_read_state.read_epoch IS 'Rises with each mark unread; a cursor of an older epoch is void.';
COMMENT ON COLUMN channel_read_state.moved_by IS 'What moved the cursor last.';

CREATE TABLE message (
    channel_id        bigint      NOT NULL,
    seq               bigint      NOT NULL,
    id                bigint      NOT NULL,
    sender_id         bigint      NOT NULL,
    deleted_version   bigint      NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL,
    mentions_everyone boolean     NOT NULL DEFAULT false,
    client_message_id text,
    mentions          bigint[]    NOT NULL DEFAULT '{}',
    body              text        NOT NULL,
    CONSTRAINT message_pkey PRIMARY KEY (channel_id, seq)
);

CREATE UNIQUE INDEX message_client_message_id_once ON message (channel_id, sender_id, client_message_id)
    WHERE client_message_id IS NOT NULL;
CREATE INDEX message_deleted ON message (channel_id, deleted_version) WHERE deleted_version > 0;
CREATE INDEX message_everyone ON message (channel_id, seq) WHERE mentions_everyone;

COMMENT ON COLUMN message.deleted_version IS 'The head''s version at its deletion; 0 while it stands.';
COMMENT ON COLUMN message.mentions IS 'Whom it names, in or out of the channel, without its sender; empty once it is deleted.';

CREATE TABLE mention (
    user_id    bigint NOT NULL,
    channel_id bigint NOT NULL,
    seq        bigint NOT NULL,
    CONSTRAINT mention_pkey PRIMARY KEY (user_id, channel_id, seq)
);

CREATE TABLE device (
    user_id   bigint      NOT NULL,
    device_id text        NOT NULL,
    seen_at   timestamptz NOT NULL,
    CONSTRAINT device_pkey PRIMARY KEY (user_id, device_id)
) WITH (fillfactor = 80);

CREATE INDEX device_seen_at ON device (seen_at);

COMMENT ON COLUMN device.seen_at IS 'When it was last heard of, to the day.';

CREATE TABLE device_sync_state (
    user_id            bigint      NOT NULL,
    device_id          text        NOT NULL,
    channel_id         bigint      NOT NULL,
    last_delivered_seq bigint      NOT NULL,
    version            bigint      NOT NULL DEFAULT 0,
    confirmed_at       timestamptz NOT NULL,
    CONSTRAINT device_sync_state_pkey PRIMARY KEY (user_id, device_id, channel_id)
) WITH (fillfactor = 80);

COMMENT ON COLUMN device_sync_state.version IS 'The head''s version up to which the device has heard of deletions; -1 where it said none.';

-- Names this incarnation of the data. A failover that lost commits, or a restore, gives seqs and versions out
-- again, and then at least one of the three differs: the cluster, its timeline, the database within it.
-- +goose StatementBegin
CREATE FUNCTION store_epoch() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT to_hex(c.system_identifier) || '-'
        || CASE WHEN pg_is_in_recovery() THEN (SELECT to_hex(timeline_id) FROM pg_control_checkpoint())
                ELSE ltrim(left(pg_walfile_name(pg_current_wal_lsn()), 8), '0') END
        || '-' || to_hex(d.oid::bigint)
    FROM pg_control_system() c, pg_database d
    WHERE d.datname = current_database()
$$;
-- +goose StatementEnd

-- Names the running server: to one connection, as long as it says the same, so does store_epoch, which has to read a
-- file for it. Empty on a standby, whose timeline may change while it runs. It has no FROM, so that it is inlined.
-- +goose StatementBegin
CREATE FUNCTION store_instance() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN pg_is_in_recovery() THEN ''
        ELSE extract(epoch FROM pg_postmaster_start_time())::text || '-' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    END
$$;
-- +goose StatementEnd

-- +goose Down

DROP FUNCTION store_instance;
DROP FUNCTION store_epoch;
DROP TABLE device_sync_state, device, mention, message, channel_read_state, channel_head, channel, users;
DROP SEQUENCE activity, channel_id;
