-- Why: recurring work is sent by the store's own schedules, which survive restarts; of several nodes
-- one fires each instant, because the row says which one comes next.

CREATE TABLE schedule (
  name          TEXT    PRIMARY KEY,
  words         TEXT    NOT NULL,
  is_paused     INTEGER NOT NULL DEFAULT 0 CHECK (is_paused IN (0, 1)),
  next_at       INTEGER,
  last_at       INTEGER,
  last_id       TEXT,
  fired_total   INTEGER NOT NULL DEFAULT 0,
  skipped_total INTEGER NOT NULL DEFAULT 0,
  last_error    TEXT,
  created_at    INTEGER NOT NULL,
  changed_at    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (next_at, name)
 WHERE is_paused = 0 AND next_at IS NOT NULL;
