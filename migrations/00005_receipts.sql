-- +goose Up

-- Who does not share receipts is seen by nobody as a reader, and sees nobody's.
ALTER TABLE users ADD COLUMN shares_read_receipts boolean NOT NULL DEFAULT true;

-- The same of everybody who is in a channel, so that an audience is told by the rows of its members alone. It follows
-- users: whoever joins holds their row there, and whoever changes it waits.
ALTER TABLE channel_read_state ADD COLUMN shares_receipts boolean NOT NULL DEFAULT true;

-- A small number for each person who was ever in a channel, in the order of joining: ids have 64 bits and lie far apart.
ALTER TABLE channel_read_state ADD COLUMN member_index integer;
ALTER TABLE channel_head ADD COLUMN members_ever integer NOT NULL DEFAULT 0;

UPDATE channel_read_state rs
SET member_index = numbered.member_index
FROM (
    SELECT user_id, channel_id, row_number() OVER (PARTITION BY channel_id ORDER BY joined_seq, user_id) - 1 AS member_index
    FROM channel_read_state
) AS numbered
WHERE rs.user_id = numbered.user_id AND rs.channel_id = numbered.channel_id;

UPDATE channel_head h
SET members_ever = counted.members
FROM (SELECT channel_id, count(*) AS members FROM channel_read_state GROUP BY channel_id) AS counted
WHERE h.channel_id = counted.channel_id;

ALTER TABLE channel_read_state
    ALTER COLUMN member_index SET NOT NULL,
    ADD CONSTRAINT channel_read_state_member_index_once UNIQUE (channel_id, member_index);

COMMENT ON COLUMN channel_head.members_ever IS 'How many people have ever been in it: the member_index that is given out next.';
COMMENT ON COLUMN channel_read_state.member_index IS 'Given out at the first joining, kept on return, never anybody else''s.';
COMMENT ON COLUMN channel_read_state.shares_receipts IS 'While they are a member, as users.shares_read_receipts.';

-- The one definition of who can be said to have read a message: members without a break since before it was sent,
-- without its sender, and without those who do not share receipts. Counts and lists are all of this.
CREATE VIEW receipt_audience AS
SELECT m.channel_id, m.seq, rs.user_id, rs.member_index, rs.receipt_seq >= m.seq AS has_read
FROM message m
JOIN channel_read_state rs ON rs.channel_id = m.channel_id
WHERE rs.member AND rs.joined_seq < m.seq AND rs.user_id <> m.sender_id AND rs.shares_receipts;

-- +goose Down

DROP VIEW receipt_audience;
ALTER TABLE channel_read_state DROP COLUMN shares_receipts, DROP COLUMN member_index;
ALTER TABLE channel_head DROP COLUMN members_ever;
ALTER TABLE users DROP COLUMN shares_read_receipts;
