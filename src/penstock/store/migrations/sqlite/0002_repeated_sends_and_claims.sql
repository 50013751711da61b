-- Why: a duplicate is told the number of the first message too; keys from before have none.  And a
-- claim with a key can be repeated: what it gave is remembered for some minutes.

ALTER TABLE dedup ADD COLUMN message_no INTEGER;

CREATE TABLE claim_key (
  queue_no  INTEGER NOT NULL,
  claim_key TEXT    NOT NULL,
  given     TEXT    NOT NULL,
  until_at  INTEGER NOT NULL,
  PRIMARY KEY (queue_no, claim_key)
) WITHOUT ROWID;

CREATE INDEX claim_key_by_end ON claim_key (until_at);
