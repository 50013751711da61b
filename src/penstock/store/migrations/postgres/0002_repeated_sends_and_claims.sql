-- Why: a duplicate is told the number of the first message too; keys from before have none.  And a
-- claim with a key can be repeated: what it gave is remembered for some minutes.

ALTER TABLE dedup ADD COLUMN message_no bigint;

CREATE TABLE claim_key (
  queue_no  bigint NOT NULL,
  claim_key text   COLLATE "C" NOT NULL,
  given     text   NOT NULL,
  until_at  bigint NOT NULL,
  PRIMARY KEY (queue_no, claim_key)
)
WITH (
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_scale_factor = 0.05
);

CREATE INDEX claim_key_by_end ON claim_key (until_at);
