-- Why: jobs.  An attempt has a time to be done in, a message that kills its workers is set aside, a
-- dedup key may be taken until its message is claimed or has ended, a holder tells how far it is, and
-- a claim may ask for some kinds only.

ALTER TABLE message
  ADD COLUMN timeout_ms       bigint,
  ADD COLUMN retries_timeouts smallint NOT NULL DEFAULT 0 CHECK (retries_timeouts IN (0, 1)),
  ADD COLUMN started_at       bigint,
  ADD COLUMN crashes          integer NOT NULL DEFAULT 0,
  ADD COLUMN dedup_until      text COLLATE "C" CHECK (dedup_until IN ('claimed', 'ended')),
  ADD COLUMN progress         text,
  ADD COLUMN route            text COLLATE "C";

CREATE INDEX message_of_kind ON message (queue_no, kind, is_blocked, priority, order_no)
 WHERE state = 'ready' AND kind IS NOT NULL;

-- The tables of days that are there already.
DO $$
DECLARE
  one integer;
BEGIN
  FOR one IN SELECT d.day FROM day AS d LOOP
    EXECUTE format('ALTER TABLE history_%s
                      ADD COLUMN route    text COLLATE "C",
                      ADD COLUMN crashes  integer NOT NULL DEFAULT 0,
                      ADD COLUMN held_key text COLLATE "C"', one);
  END LOOP;
END
$$;
