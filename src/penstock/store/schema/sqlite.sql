-- Generated from the migrations by `make schema`; not read by the program.

CREATE TABLE api_key (
  key_id      TEXT PRIMARY KEY,
  name        TEXT    NOT NULL,
  secret_hash TEXT    NOT NULL,
  roles       TEXT    NOT NULL,
  queues      TEXT    NOT NULL,
  created_at  INTEGER NOT NULL,
  revoked_at  INTEGER
, signed_with TEXT, expires_at INTEGER, last_used_at INTEGER) WITHOUT ROWID;

CREATE TABLE archive_mark (
  source     TEXT    NOT NULL,
  day        INTEGER NOT NULL,
  done_no    INTEGER NOT NULL DEFAULT 0,
  planned_no INTEGER NOT NULL DEFAULT 0,
  rows_total INTEGER NOT NULL DEFAULT 0,
  is_closed  INTEGER NOT NULL DEFAULT 0 CHECK (is_closed IN (0, 1)),
  moved_at   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (source, day),
  CHECK (done_no <= planned_no)
) WITHOUT ROWID;

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

CREATE TABLE circuit_hold (
  circuit_no INTEGER NOT NULL,
  queue_no   INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (circuit_no, queue_no)
) WITHOUT ROWID;

CREATE INDEX circuit_hold_by_queue ON circuit_hold (queue_no);

CREATE TABLE circuit_sample (
  circuit_no INTEGER NOT NULL,
  is_failure INTEGER NOT NULL,
  request_id TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (circuit_no, is_failure, request_id)
) WITHOUT ROWID;

CREATE INDEX circuit_sample_by_time ON circuit_sample (circuit_no, is_failure, at, request_id);

CREATE TABLE claim_key (
  queue_no  INTEGER NOT NULL,
  claim_key TEXT    NOT NULL,
  given     TEXT    NOT NULL,
  until_at  INTEGER NOT NULL,
  PRIMARY KEY (queue_no, claim_key)
) WITHOUT ROWID;

CREATE INDEX claim_key_by_end ON claim_key (until_at);

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

CREATE TABLE day (
  day INTEGER PRIMARY KEY
);

CREATE TABLE dedup (
  queue_no  INTEGER NOT NULL,
  dedup_key TEXT    NOT NULL,
  id        TEXT    NOT NULL,
  until_at  INTEGER NOT NULL, message_no INTEGER,
  PRIMARY KEY (queue_no, dedup_key)
) WITHOUT ROWID;

CREATE INDEX dedup_by_end ON dedup (until_at);

CREATE TABLE document (
  name       TEXT    PRIMARY KEY,
  text       TEXT,
  version    INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE duty (
  name     TEXT    PRIMARY KEY,
  until_at INTEGER NOT NULL,
  holder   TEXT    NOT NULL,
  ticks    INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE fact (
  fact_no INTEGER PRIMARY KEY AUTOINCREMENT,
  at      INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  subject TEXT    NOT NULL,
  data    TEXT    NOT NULL
);

CREATE INDEX fact_by_kind ON fact (kind, at, fact_no);

CREATE INDEX fact_by_subject ON fact (subject, at, fact_no);

CREATE INDEX fact_by_time ON fact (at, fact_no);

CREATE TABLE fair_line (
  queue_no  INTEGER NOT NULL,
  priority  INTEGER NOT NULL,
  passed_no INTEGER NOT NULL,
  PRIMARY KEY (queue_no, priority)
) WITHOUT ROWID;

CREATE TABLE fair_share (
  queue_no  INTEGER NOT NULL,
  priority  INTEGER NOT NULL,
  group_key TEXT    NOT NULL,
  finish_no INTEGER NOT NULL,
  PRIMARY KEY (queue_no, priority, group_key)
) WITHOUT ROWID;

CREATE INDEX fair_share_by_finish ON fair_share (queue_no, priority, finish_no);

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
  outcome      TEXT    CHECK (outcome IN ('done', 'failed', 'cancelled')), created_by TEXT,
  CHECK (total = remaining + done + failed + skipped),
  CHECK ((outcome IS NULL) = (ended_at IS NULL))
);

CREATE INDEX flow_by_creator ON flow (created_by)
 WHERE created_by IS NOT NULL;

CREATE INDEX flow_by_end ON flow (ended_at)
 WHERE ended_at IS NOT NULL;

CREATE INDEX flow_by_name ON flow (name, created_at, flow_no);

CREATE INDEX flow_by_outcome ON flow (outcome, created_at, flow_no);

CREATE INDEX flow_by_time ON flow (created_at, flow_no);

CREATE INDEX flow_failing ON flow (created_at, flow_no)
 WHERE failed > 0 AND is_cancelled = 0;

CREATE TABLE flow_edge (
  parent_no INTEGER NOT NULL,
  child_no  INTEGER NOT NULL,
  runs_on   TEXT    NOT NULL CHECK (runs_on IN ('done', 'ended', 'failed')),
  outcome   TEXT    CHECK (outcome IN ('done', 'failed', 'skipped')),
  PRIMARY KEY (parent_no, child_no)
) WITHOUT ROWID;

CREATE INDEX flow_edge_by_child ON flow_edge (child_no);

CREATE TABLE flow_key (
  name        TEXT NOT NULL,
  dedup_key   TEXT NOT NULL,
  flow_no     INTEGER NOT NULL,
  taken_until INTEGER NOT NULL,
  PRIMARY KEY (name, dedup_key)
) WITHOUT ROWID;

CREATE INDEX flow_key_by_flow ON flow_key (flow_no);

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

CREATE INDEX flow_callback ON flow_member (flow_no)
 WHERE role <> 'member';

CREATE INDEX flow_member_by_flow ON flow_member (flow_no, message_no);

CREATE INDEX flow_member_by_state ON flow_member (flow_no, state, message_no);

CREATE TABLE login (
  token_hash TEXT    NOT NULL PRIMARY KEY,
  key_id     TEXT    NOT NULL,
  until_at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX login_by_end ON login (until_at);

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
, timeout_ms INTEGER, retries_timeouts INTEGER NOT NULL DEFAULT 0
      CHECK (retries_timeouts IN (0, 1)), started_at INTEGER, crashes INTEGER NOT NULL DEFAULT 0, dedup_until TEXT CHECK (dedup_until IN ('claimed', 'ended')), progress TEXT, route TEXT, turn INTEGER NOT NULL DEFAULT 0, gate INTEGER NOT NULL DEFAULT 0 CHECK (gate IN (0, 1, 2)), flow_no INTEGER);

CREATE INDEX message_at_rest ON message (queue_no, message_no)
 WHERE state = 'dead';

CREATE UNIQUE INDEX message_by_id ON message (id);

CREATE INDEX message_by_tag1 ON message (tag1) WHERE tag1 IS NOT NULL;

CREATE INDEX message_by_tag2 ON message (tag2) WHERE tag2 IS NOT NULL;

CREATE INDEX message_held_back ON message (queue_no, group_key, priority, turn, order_no)
 WHERE gate = 2 AND state = 'ready';

CREATE INDEX message_in_group ON message (queue_no, group_key, order_no)
 WHERE group_key IS NOT NULL AND state IN ('waiting', 'ready', 'leased');

CREATE INDEX message_let_through ON message (queue_no, group_key, state) WHERE gate = 1;

CREATE INDEX message_moved_dead ON message (queue_no, order_no)
 WHERE dead_from IS NOT NULL;

CREATE INDEX message_of_kind ON message (queue_no, kind, is_blocked, priority, turn, order_no)
 WHERE state = 'ready' AND kind IS NOT NULL;

CREATE INDEX message_to_claim ON message (queue_no, is_blocked, priority, turn, order_no)
 WHERE state = 'ready';

CREATE INDEX message_to_expire ON message (queue_no, expires_at)
 WHERE expires_at IS NOT NULL AND state IN ('waiting', 'ready');

CREATE INDEX message_to_fall_due ON message (queue_no, due_at)
 WHERE state IN ('waiting', 'leased');

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE migration (
  number     INTEGER PRIMARY KEY,
  name       TEXT   NOT NULL,
  checksum   TEXT   NOT NULL,
  applied_at BIGINT NOT NULL
);

CREATE TABLE minute_counter (
  sample_no       INTEGER PRIMARY KEY AUTOINCREMENT,
  queue_no        INTEGER NOT NULL,
  minute_at       INTEGER NOT NULL,
  at              INTEGER NOT NULL,
  waiting         INTEGER NOT NULL,
  ready           INTEGER NOT NULL,
  leased          INTEGER NOT NULL,
  dead            INTEGER NOT NULL,
  sent_total      INTEGER NOT NULL,
  done_total      INTEGER NOT NULL,
  dead_total      INTEGER NOT NULL,
  cancelled_total INTEGER NOT NULL,
  failed_total    INTEGER NOT NULL,
  expired_total   INTEGER NOT NULL,
  claimed_total   INTEGER NOT NULL,
  oldest_ready_at INTEGER,
  wait_p50_ms     INTEGER,
  wait_p95_ms     INTEGER,
  work_p50_ms     INTEGER,
  work_p95_ms     INTEGER,
  is_for_lake     INTEGER NOT NULL DEFAULT 0 CHECK (is_for_lake IN (0, 1)),
  UNIQUE (queue_no, minute_at)
);

CREATE INDEX minute_counter_by_time ON minute_counter (minute_at);

CREATE TABLE move_task (
  task_id        TEXT    PRIMARY KEY,
  source_no      INTEGER NOT NULL,
  target_no      INTEGER,
  state          TEXT    NOT NULL
                 CHECK (state IN ('running', 'cancelling', 'completed', 'cancelled', 'failed')),
  max_per_second INTEGER,
  to_move        INTEGER NOT NULL,
  moved          INTEGER NOT NULL,
  before_no      INTEGER NOT NULL,
  credit         INTEGER NOT NULL,
  paced_at       INTEGER NOT NULL,
  started_at     INTEGER NOT NULL,
  ended_at       INTEGER,
  reason         TEXT
) WITHOUT ROWID;

CREATE UNIQUE INDEX move_task_active ON move_task (source_no)
 WHERE state IN ('running', 'cancelling');

CREATE INDEX move_task_by_source ON move_task (source_no, before_no);

CREATE TABLE node_queue (
  queue_no        INTEGER PRIMARY KEY,
  subscription_no INTEGER NOT NULL,
  node            TEXT    NOT NULL
);

CREATE TABLE pace (
  queue_no  INTEGER NOT NULL,
  group_key TEXT    NOT NULL,
  credit    INTEGER NOT NULL,
  paced_at  INTEGER NOT NULL,
  full_at   INTEGER NOT NULL,
  PRIMARY KEY (queue_no, group_key)
) WITHOUT ROWID;

CREATE INDEX pace_by_end ON pace (full_at);

CREATE TABLE queue (
  queue_no   INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT    NOT NULL,
  settings   TEXT    NOT NULL,
  is_paused  INTEGER NOT NULL DEFAULT 0 CHECK (is_paused IN (0, 1)),
  version    INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  removed_at INTEGER
, changed_at INTEGER NOT NULL DEFAULT 0, held_by TEXT);

CREATE UNIQUE INDEX queue_by_name ON queue (name) WHERE removed_at IS NULL;

CREATE INDEX queue_held ON queue (held_by, queue_no)
 WHERE held_by IS NOT NULL;

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
, owner TEXT) WITHOUT ROWID;

CREATE INDEX schedule_due ON schedule (next_at, name)
 WHERE is_paused = 0 AND next_at IS NOT NULL;

CREATE INDEX schedule_owner ON schedule (owner, name)
 WHERE owner IS NOT NULL;

CREATE TABLE sequence (
  name     TEXT PRIMARY KEY,
  taken_no INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE signal (
  name     TEXT    NOT NULL PRIMARY KEY,
  body     TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  until_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX signal_by_end ON signal (until_at);

CREATE TABLE signal_waiter (
  name       TEXT    NOT NULL,
  message_no INTEGER NOT NULL,
  step       TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  until_at   INTEGER,
  lease_no   INTEGER,
  PRIMARY KEY (name, message_no)
) WITHOUT ROWID;

CREATE INDEX signal_waiter_by_message ON signal_waiter (message_no);

CREATE TABLE sqlite_sequence(name,seq);

CREATE TABLE step (
  message_no INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  step_no    INTEGER NOT NULL CHECK (step_no > 0),
  outcome    TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  day        INTEGER NOT NULL, kind TEXT NOT NULL DEFAULT 'step'
  CHECK (kind IN ('step', 'sleep', 'wait')), lease_no INTEGER, took_ms INTEGER,
  PRIMARY KEY (message_no, name)
) WITHOUT ROWID;

CREATE INDEX step_by_day ON step (day);

CREATE TABLE subscription (
  subscription_no INTEGER PRIMARY KEY AUTOINCREMENT,
  topic_no        INTEGER NOT NULL,
  name            TEXT    NOT NULL,
  queue_no        INTEGER NOT NULL,
  kinds           TEXT    NOT NULL,
  dispatch        TEXT    NOT NULL CHECK (dispatch IN ('shared', 'sticky')),
  created_at      INTEGER NOT NULL
, settings TEXT NOT NULL DEFAULT '{}');

CREATE UNIQUE INDEX subscription_by_name ON subscription (topic_no, name);

CREATE INDEX subscription_by_queue ON subscription (queue_no);

CREATE TABLE topic (
  topic_no   INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT    NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
, settings TEXT NOT NULL DEFAULT '{}', revision INTEGER NOT NULL DEFAULT 0, numbered INTEGER NOT NULL DEFAULT 0);

CREATE TABLE topic_counter (
  topic_no        INTEGER NOT NULL,
  stripe          INTEGER NOT NULL,
  published_total INTEGER NOT NULL DEFAULT 0,
  unmatched_total INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (topic_no, stripe)
) WITHOUT ROWID;

CREATE TABLE unhold_line (
  place    INTEGER PRIMARY KEY AUTOINCREMENT,
  queue_no INTEGER NOT NULL
);

CREATE INDEX unhold_line_by_queue ON unhold_line (queue_no);

CREATE TABLE worker (
  worker_id     TEXT    PRIMARY KEY,
  state         TEXT    NOT NULL CHECK (state IN ('active', 'draining', 'left', 'lost')),
  name          TEXT,
  host          TEXT,
  pid           INTEGER,
  queues        TEXT    NOT NULL,
  kinds         TEXT    NOT NULL,
  slots         INTEGER NOT NULL CHECK (slots > 0),
  labels        TEXT    NOT NULL,
  registered_at INTEGER NOT NULL,
  beat_at       INTEGER NOT NULL,
  alive_until   INTEGER NOT NULL,
  ended_at      INTEGER
) WITHOUT ROWID;

CREATE INDEX worker_gone ON worker (ended_at)
 WHERE ended_at IS NOT NULL;

CREATE INDEX worker_present ON worker (worker_id)
 WHERE state IN ('active', 'draining');
