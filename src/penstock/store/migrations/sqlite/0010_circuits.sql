-- Why: circuits keep what they know of requests in the store, for all nodes; they hold queues, and
-- those are let go one after the other.  Some duties are done once per cluster, and some texts
-- (routes, settings of the breaker) are the same for all nodes.

ALTER TABLE queue ADD COLUMN held_by TEXT;

CREATE TABLE circuit (
  circuit_no  INTEGER PRIMARY KEY AUTOINCREMENT,
  hash        TEXT    NOT NULL UNIQUE,
  pattern     TEXT    NOT NULL,
  state       TEXT    NOT NULL CHECK (state IN ('closed', 'open', 'half_open')),
  fail_ratio  INTEGER NOT NULL DEFAULT 0,
  opened_at   INTEGER,
  reopened    INTEGER NOT NULL DEFAULT 0,
  is_forced   INTEGER NOT NULL DEFAULT 0 CHECK (is_forced IN (0, 1)),
  generation  INTEGER NOT NULL DEFAULT 0,
  probe_until INTEGER NOT NULL DEFAULT 0,
  successes   INTEGER NOT NULL DEFAULT 0,
  failures    INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX circuit_not_closed ON circuit (state, hash)
 WHERE state <> 'closed';

CREATE TABLE circuit_sample (
  circuit_no INTEGER NOT NULL,
  is_failure INTEGER NOT NULL,
  request_id TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (circuit_no, is_failure, request_id)
) WITHOUT ROWID;

-- For the ones that are too old to count, and for those that have to go.
CREATE INDEX circuit_sample_by_time ON circuit_sample (circuit_no, is_failure, at, request_id);

CREATE TABLE circuit_hold (
  circuit_no INTEGER NOT NULL,
  queue_no   INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (circuit_no, queue_no)
) WITHOUT ROWID;

CREATE TABLE unhold_line (
  place    INTEGER PRIMARY KEY AUTOINCREMENT,
  queue_no INTEGER NOT NULL
);

CREATE TABLE duty (
  name     TEXT    PRIMARY KEY,
  until_at INTEGER NOT NULL,
  holder   TEXT    NOT NULL,
  ticks    INTEGER NOT NULL
) WITHOUT ROWID;

-- A text that was removed stays as none, so that its version goes on growing.
CREATE TABLE document (
  name       TEXT    PRIMARY KEY,
  text       TEXT,
  version    INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) WITHOUT ROWID;
