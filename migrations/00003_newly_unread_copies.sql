-- +goose Up

ALTER TABLE lease ADD COLUMN generation bigint NOT NULL DEFAULT 0;

COMMENT ON COLUMN lease.generation IS 'Copies of arrivals are of a generation. Those of an older one than this may lack something.';

-- +goose Down

ALTER TABLE lease DROP COLUMN generation;
