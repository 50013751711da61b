-- Why: the first schema.  Queues, messages apart from their bodies, counters, duplicates, keys.
-- History, attempts and bodies stand in tables of one day each (store/sql/sqlite/partitions.sql).

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE sequence (
  name     TEXT PRIMARY KEY,
  taken_no INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO sequence (name, taken_no) VALUES ('message', 0);

CREATE TABLE queue (
  queue_no   INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT    NOT NULL,
  settings   TEXT    NOT NULL,
  is_paused  INTEGER NOT NULL DEFAULT 0 CHECK (is_paused IN (0, 1)),
  version    INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  removed_at INTEGER
);

CREATE UNIQUE INDEX queue_by_name ON queue (name) WHERE removed_at IS NULL;

CREATE TABLE message (
  id              TEXT    NOT NULL,
  queue_no        INTEGER NOT NULL,
  due_at          INTEGER NOT NULL,
  sent_at         INTEGER NOT NULL,
  message_no      INTEGER PRIMARY KEY,
  state           TEXT    NOT NULL CHECK (state IN ('waiting', 'ready', 'leased', 'dead')),
  order_no        INTEGER NOT NULL,
  priority        INTEGER NOT NULL,
  expires_at      INTEGER,
  attempts        INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  max_attempts    INTEGER,
  failures        INTEGER NOT NULL DEFAULT 0,
  lease_no        INTEGER NOT NULL DEFAULT 0 CHECK (lease_no >= 0),
  is_blocked      INTEGER NOT NULL CHECK (is_blocked IN (0, 1)),
  group_key       TEXT,
  kind            TEXT,
  entity_id       TEXT,
  tag1            TEXT,
  tag2            TEXT,
  dedup_key       TEXT,
  first_leased_at INTEGER,
  leased_at       INTEGER,
  leased_by       TEXT,
  last_error      TEXT,
  dead_from       INTEGER,
  reason          TEXT,
  size            INTEGER NOT NULL,
  body_day        INTEGER NOT NULL
);

CREATE UNIQUE INDEX message_by_id ON message (id);

-- Only what is ready is in here; a claim takes from the front of the unblocked part.
CREATE INDEX message_to_claim ON message (queue_no, is_blocked, priority, order_no)
 WHERE state = 'ready';

CREATE INDEX message_to_fall_due ON message (queue_no, due_at)
 WHERE state IN ('waiting', 'leased');

CREATE INDEX message_to_expire ON message (queue_no, expires_at)
 WHERE expires_at IS NOT NULL AND state IN ('waiting', 'ready');

CREATE INDEX message_in_group ON message (queue_no, group_key, order_no)
 WHERE group_key IS NOT NULL AND state IN ('waiting', 'ready', 'leased');

CREATE INDEX message_at_rest ON message (queue_no, message_no)
 WHERE state = 'dead';

CREATE INDEX message_moved_dead ON message (queue_no, order_no)
 WHERE dead_from IS NOT NULL;

CREATE INDEX message_by_tag1 ON message (tag1) WHERE tag1 IS NOT NULL;

CREATE INDEX message_by_tag2 ON message (tag2) WHERE tag2 IS NOT NULL;

CREATE TABLE counter (
  queue_no        INTEGER NOT NULL,
  stripe          INTEGER NOT NULL,
  waiting         INTEGER NOT NULL DEFAULT 0,
  ready           INTEGER NOT NULL DEFAULT 0,
  leased          INTEGER NOT NULL DEFAULT 0,
  dead            INTEGER NOT NULL DEFAULT 0,
  sent_total      INTEGER NOT NULL DEFAULT 0,
  done_total      INTEGER NOT NULL DEFAULT 0,
  dead_total      INTEGER NOT NULL DEFAULT 0,
  cancelled_total INTEGER NOT NULL DEFAULT 0,
  failed_total    INTEGER NOT NULL DEFAULT 0,
  expired_total   INTEGER NOT NULL DEFAULT 0,
  claimed_total   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (queue_no, stripe)
) WITHOUT ROWID;

CREATE TABLE dedup (
  queue_no  INTEGER NOT NULL,
  dedup_key TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  until_at  INTEGER NOT NULL,
  PRIMARY KEY (queue_no, dedup_key)
) WITHOUT ROWID;

CREATE INDEX dedup_by_end ON dedup (until_at);

CREATE TABLE api_key (
  key_id      TEXT PRIMARY KEY,
  name        TEXT    NOT NULL,
  secret_hash TEXT    NOT NULL,
  roles       TEXT    NOT NULL,
  queues      TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  revoked_at  INTEGER
) WITHOUT ROWID;

-- Which days have tables of their own.
CREATE TABLE day (
  day INTEGER PRIMARY KEY
);
