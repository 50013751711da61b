-- Why: results and flows.  What a job returned is kept with its history.  A flow is a set of messages:
-- edges name the parents that a message waits for, and its row counts the members that have not ended.

ALTER TABLE message ADD COLUMN flow_no INTEGER;

CREATE TABLE flow (
  flow_no    INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT    NOT NULL UNIQUE,
  name       TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at   INTEGER,
  is_open    INTEGER NOT NULL DEFAULT 0 CHECK (is_open IN (0, 1)),
  total      INTEGER NOT NULL DEFAULT 0,
  remaining  INTEGER NOT NULL DEFAULT 0 CHECK (remaining >= 0),
  failed     INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
  outcome    TEXT    CHECK (outcome IN ('done', 'failed', 'cancelled')),
  day        INTEGER,
  CHECK ((outcome IS NULL) = (ended_at IS NULL))
);

CREATE INDEX flow_by_time ON flow (created_at, flow_no);

CREATE INDEX flow_by_name ON flow (name, created_at, flow_no);

CREATE INDEX flow_by_day ON flow (day)
 WHERE day IS NOT NULL;

-- Rows outlive their messages, for as long as the flow is kept.
CREATE TABLE flow_member (
  message_no      INTEGER PRIMARY KEY,
  flow_no         INTEGER NOT NULL,
  id              TEXT    NOT NULL,
  name            TEXT,
  kind            TEXT,
  queue_no        INTEGER NOT NULL,
  role            TEXT    NOT NULL DEFAULT 'member'
                  CHECK (role IN ('member', 'on_success', 'on_failure', 'on_finish')),
  parents_left    INTEGER NOT NULL DEFAULT 0 CHECK (parents_left >= 0),
  failures_wanted INTEGER NOT NULL DEFAULT 0,
  failures_seen   INTEGER NOT NULL DEFAULT 0,
  delay_ms        INTEGER,
  due_at          INTEGER,
  released_at     INTEGER,
  outcome         TEXT    CHECK (outcome IN ('done', 'failed', 'not_needed')),
  ended_at        INTEGER,
  result_day      INTEGER,
  saved           TEXT,
  inputs          TEXT,
  UNIQUE (flow_no, name)
);

CREATE INDEX flow_member_by_flow ON flow_member (flow_no, message_no);

CREATE INDEX flow_member_by_id ON flow_member (id);

CREATE TABLE flow_edge (
  parent_no INTEGER NOT NULL,
  child_no  INTEGER NOT NULL,
  runs_on   TEXT    NOT NULL DEFAULT 'done' CHECK (runs_on IN ('done', 'ended', 'failed')),
  outcome   TEXT    CHECK (outcome IN ('done', 'failed', 'not_needed')),
  PRIMARY KEY (parent_no, child_no)
) WITHOUT ROWID;

CREATE INDEX flow_edge_by_child ON flow_edge (child_no);

-- For each day:
ALTER TABLE history_{day} ADD COLUMN result TEXT;

ALTER TABLE history_{day} ADD COLUMN flow_no INTEGER;
