-- Why: recurring work is sent by the store's own schedules, which survive restarts; of several nodes
-- one fires each instant, because the row says which one comes next.

CREATE TABLE schedule (
  name          text     COLLATE "C" PRIMARY KEY,
  words         text     NOT NULL,
  is_paused     smallint NOT NULL DEFAULT 0 CHECK (is_paused IN (0, 1)),
  next_at       bigint,
  last_at       bigint,
  last_id       text     COLLATE "C",
  fired_total   bigint   NOT NULL DEFAULT 0,
  skipped_total bigint   NOT NULL DEFAULT 0,
  last_error    text,
  created_at    bigint   NOT NULL,
  changed_at    bigint   NOT NULL
);

CREATE INDEX schedule_due ON schedule (next_at, name)
 WHERE is_paused = 0 AND next_at IS NOT NULL;
