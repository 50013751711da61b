-- name: create_history
-- One row per ending of a message on this day.  SQLite's types, and rows numbered by SQLite.
CREATE TABLE IF NOT EXISTS history_{day} (
  history_no      INTEGER PRIMARY KEY,
  id              TEXT    NOT NULL,
  message_no      INTEGER NOT NULL,
  queue_no        INTEGER NOT NULL,
  outcome         TEXT    NOT NULL,
  reason          TEXT,
  kind            TEXT,
  entity_id       TEXT,
  tag1            TEXT,
  tag2            TEXT,
  group_key       TEXT,
  priority        INTEGER NOT NULL,
  sent_at         INTEGER NOT NULL,
  due_at          INTEGER NOT NULL,
  first_leased_at INTEGER,
  leased_at       INTEGER,
  finished_at     INTEGER NOT NULL,
  attempts        INTEGER NOT NULL,
  failures        INTEGER NOT NULL,
  lease_no        INTEGER NOT NULL,
  leased_by       TEXT,
  last_error      TEXT,
  size            INTEGER NOT NULL,
  body_day        INTEGER NOT NULL,
  route           TEXT,
  crashes         INTEGER NOT NULL DEFAULT 0,
  held_key        TEXT,
  result          TEXT,
  flow_no         INTEGER
);

-- name: create_attempt
-- One row per lease that ended without finishing its message on this day.
-- SQLite's types, and rows numbered by SQLite.
CREATE TABLE IF NOT EXISTS attempt_{day} (
  attempt_no INTEGER PRIMARY KEY,
  id         TEXT    NOT NULL,
  message_no INTEGER NOT NULL,
  queue_no   INTEGER NOT NULL,
  lease_no   INTEGER NOT NULL,
  outcome    TEXT    NOT NULL,
  leased_at  INTEGER,
  ended_at   INTEGER NOT NULL,
  leased_by  TEXT,
  error      TEXT
);

-- name: create_attempt_log
-- What handlers logged on this day.  SQLite's types.
CREATE TABLE IF NOT EXISTS attempt_log_{day} (
  message_no INTEGER NOT NULL,
  lease_no   INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  lines      TEXT    NOT NULL,
  PRIMARY KEY (message_no, lease_no, seq)
) WITHOUT ROWID;

-- name: create_body
-- Contents of messages sent on this day; never changed, so state changes stay small.
-- SQLite's types, and rows numbered by SQLite.
CREATE TABLE IF NOT EXISTS body_{day} (
  message_no INTEGER PRIMARY KEY,
  body       TEXT NOT NULL,
  attributes TEXT,
  trace      TEXT
);
