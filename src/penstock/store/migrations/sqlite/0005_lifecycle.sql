-- Why: jobs.  An attempt has a time to be done in, a message that kills its workers is set aside, a
-- dedup key may be taken until its message is claimed or has ended, a holder tells how far it is, and
-- a claim may ask for some kinds only.

ALTER TABLE message ADD COLUMN timeout_ms INTEGER;

ALTER TABLE message ADD COLUMN retries_timeouts INTEGER NOT NULL DEFAULT 0
      CHECK (retries_timeouts IN (0, 1));

ALTER TABLE message ADD COLUMN started_at INTEGER;

ALTER TABLE message ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE message ADD COLUMN dedup_until TEXT CHECK (dedup_until IN ('claimed', 'ended'));

ALTER TABLE message ADD COLUMN progress TEXT;

ALTER TABLE message ADD COLUMN route TEXT;

CREATE INDEX message_of_kind ON message (queue_no, kind, is_blocked, priority, order_no)
 WHERE state = 'ready' AND kind IS NOT NULL;

-- For each day:
ALTER TABLE history_{day} ADD COLUMN route TEXT;

ALTER TABLE history_{day} ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE history_{day} ADD COLUMN held_key TEXT;
