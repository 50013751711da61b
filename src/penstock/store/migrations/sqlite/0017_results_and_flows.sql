-- Why: results and flows.  What a job returned is kept with its history.  A flow is a set of jobs, some
-- of which wait for others: one that waits is not a message yet.  It is kept with its flow until it may
-- run, so that claims, purges, expiry and limits never meet it.

ALTER TABLE message ADD COLUMN flow_no INTEGER;

CREATE TABLE flow (
  flow_no      INTEGER PRIMARY KEY AUTOINCREMENT,
  id           TEXT    NOT NULL UNIQUE,
  name         TEXT    NOT NULL,
  queues       TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  ended_at     INTEGER,
  is_open      INTEGER NOT NULL CHECK (is_open IN (0, 1)),
  is_cancelled INTEGER NOT NULL CHECK (is_cancelled IN (0, 1)),
  total        INTEGER NOT NULL,
  remaining    INTEGER NOT NULL CHECK (remaining >= 0),
  done         INTEGER NOT NULL CHECK (done >= 0),
  failed       INTEGER NOT NULL CHECK (failed >= 0),
  skipped      INTEGER NOT NULL CHECK (skipped >= 0),
  outcome      TEXT    CHECK (outcome IN ('done', 'failed', 'cancelled')),
  CHECK (total = remaining + done + failed + skipped),
  CHECK ((outcome IS NULL) = (ended_at IS NULL))
);

CREATE INDEX flow_by_time ON flow (created_at, flow_no);

CREATE INDEX flow_by_name ON flow (name, created_at, flow_no);

CREATE INDEX flow_by_end ON flow (ended_at)
 WHERE ended_at IS NOT NULL;

-- A member that waits for others is here only, with its draft, until it may run.  Then it becomes a
-- message with the same number.  Rows outlive their messages, for as long as the flow is kept.
CREATE TABLE flow_member (
  message_no INTEGER PRIMARY KEY,
  flow_no    INTEGER NOT NULL,
  id         TEXT    NOT NULL UNIQUE,
  name       TEXT,
  kind       TEXT,
  queue_no   INTEGER NOT NULL,
  role       TEXT    NOT NULL
             CHECK (role IN ('member', 'on_success', 'on_failure', 'on_finish')),
  state      TEXT    NOT NULL
             CHECK (state IN ('blocked', 'released', 'done', 'dead', 'cancelled', 'skipped')),
  waits_for  INTEGER NOT NULL CHECK (waits_for >= 0),
  handles    INTEGER NOT NULL CHECK (handles >= 0),
  failures   INTEGER NOT NULL CHECK (failures >= 0),
  reason     TEXT,
  ended_at   INTEGER,
  is_wanted  INTEGER NOT NULL CHECK (is_wanted IN (0, 1)),
  result     TEXT,
  draft      TEXT,
  UNIQUE (flow_no, name)
);

CREATE INDEX flow_member_by_flow ON flow_member (flow_no, message_no);

CREATE INDEX flow_member_by_state ON flow_member (flow_no, state, message_no);

CREATE INDEX flow_callback ON flow_member (flow_no)
 WHERE role <> 'member';

CREATE TABLE flow_edge (
  parent_no INTEGER NOT NULL,
  child_no  INTEGER NOT NULL,
  runs_on   TEXT    NOT NULL CHECK (runs_on IN ('done', 'ended', 'failed')),
  outcome   TEXT    CHECK (outcome IN ('done', 'failed', 'skipped')),
  PRIMARY KEY (parent_no, child_no)
) WITHOUT ROWID;

CREATE INDEX flow_edge_by_child ON flow_edge (child_no);

-- For each day:
ALTER TABLE history_{day} ADD COLUMN result TEXT;

ALTER TABLE history_{day} ADD COLUMN flow_no INTEGER;
