-- Why: the rest of the schema, as of the other databases' migration of this number.

CREATE TABLE IF NOT EXISTS archive_mark (
  source varchar(512) NOT NULL,
  day integer NOT NULL,
  done_no bigint NOT NULL DEFAULT 0,
  planned_no bigint NOT NULL DEFAULT 0,
  rows_total bigint NOT NULL DEFAULT 0,
  is_closed smallint NOT NULL DEFAULT 0,
  moved_at bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (source, day),
  CHECK (done_no <= planned_no),
  CHECK (is_closed IN (0, 1))
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS circuit (
  circuit_no bigint NOT NULL AUTO_INCREMENT,
  hash varchar(512) NOT NULL,
  pattern longtext NOT NULL,
  state varchar(16) NOT NULL,
  fail_ratio bigint NOT NULL DEFAULT 0,
  opened_at bigint,
  reopened bigint NOT NULL DEFAULT 0,
  is_forced smallint NOT NULL DEFAULT 0,
  generation bigint NOT NULL DEFAULT 0,
  probe_until bigint NOT NULL DEFAULT 0,
  successes bigint NOT NULL DEFAULT 0,
  failures bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (circuit_no),
  UNIQUE (hash),
  CHECK (is_forced IN (0, 1)),
  CHECK (state IN ('closed', 'open', 'half_open')),
  INDEX circuit_not_closed (state, hash)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS circuit_hold (
  circuit_no bigint NOT NULL,
  queue_no bigint NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (circuit_no, queue_no),
  INDEX circuit_hold_by_queue (queue_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS circuit_sample (
  circuit_no bigint NOT NULL,
  is_failure smallint NOT NULL,
  request_id varchar(512) NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (circuit_no, is_failure, request_id),
  INDEX circuit_sample_by_time (circuit_no, is_failure, at, request_id)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS fact (
  fact_no bigint NOT NULL AUTO_INCREMENT,
  at bigint NOT NULL,
  kind varchar(512) NOT NULL,
  subject varchar(512) NOT NULL,
  data longtext NOT NULL,
  PRIMARY KEY (fact_no),
  INDEX fact_by_kind (kind, at, fact_no),
  INDEX fact_by_subject (subject, at, fact_no),
  INDEX fact_by_time (at, fact_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS flow (
  flow_no bigint NOT NULL AUTO_INCREMENT,
  id varchar(512) NOT NULL,
  name varchar(512) NOT NULL,
  queues longtext NOT NULL,
  created_at bigint NOT NULL,
  ended_at bigint,
  is_open smallint NOT NULL,
  is_cancelled smallint NOT NULL,
  total integer NOT NULL,
  remaining integer NOT NULL,
  done integer NOT NULL,
  failed integer NOT NULL,
  skipped integer NOT NULL,
  outcome varchar(16),
  created_by varchar(512),
  PRIMARY KEY (flow_no),
  CHECK (total = remaining + done + failed + skipped),
  CHECK ((outcome IS NULL) = (ended_at IS NULL)),
  CHECK (done >= 0),
  CHECK (failed >= 0),
  UNIQUE (id),
  CHECK (is_cancelled IN (0, 1)),
  CHECK (is_open IN (0, 1)),
  CHECK (outcome IN ('done', 'failed', 'cancelled')),
  CHECK (remaining >= 0),
  CHECK (skipped >= 0),
  INDEX flow_by_creator (created_by),
  INDEX flow_by_end (ended_at),
  INDEX flow_by_name (name, created_at, flow_no),
  INDEX flow_by_outcome (outcome, created_at, flow_no),
  INDEX flow_by_time (created_at, flow_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS flow_edge (
  parent_no bigint NOT NULL,
  child_no bigint NOT NULL,
  runs_on varchar(16) NOT NULL,
  outcome varchar(16),
  PRIMARY KEY (parent_no, child_no),
  CHECK (outcome IN ('done', 'failed', 'skipped')),
  CHECK (runs_on IN ('done', 'ended', 'failed')),
  INDEX flow_edge_by_child (child_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS flow_member (
  message_no bigint NOT NULL,
  flow_no bigint NOT NULL,
  id varchar(512) NOT NULL,
  name varchar(512),
  kind varchar(512),
  queue_no bigint NOT NULL,
  role varchar(16) NOT NULL,
  state varchar(16) NOT NULL,
  waits_for integer NOT NULL,
  handles integer NOT NULL,
  failures integer NOT NULL,
  reason longtext,
  ended_at bigint,
  is_wanted smallint NOT NULL,
  result longtext,
  draft longtext,
  PRIMARY KEY (message_no),
  CHECK (failures >= 0),
  UNIQUE (flow_no, name),
  CHECK (handles >= 0),
  UNIQUE (id),
  CHECK (is_wanted IN (0, 1)),
  CHECK (role IN ('member', 'on_success', 'on_failure', 'on_finish')),
  CHECK (state IN ('blocked', 'released', 'done', 'dead', 'cancelled', 'skipped')),
  CHECK (waits_for >= 0),
  INDEX flow_callback (flow_no),
  INDEX flow_member_by_flow (flow_no, message_no),
  INDEX flow_member_by_state (flow_no, state, message_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS minute_counter (
  sample_no bigint NOT NULL AUTO_INCREMENT,
  queue_no bigint NOT NULL,
  minute_at bigint NOT NULL,
  at bigint NOT NULL,
  waiting bigint NOT NULL,
  ready bigint NOT NULL,
  leased bigint NOT NULL,
  dead bigint NOT NULL,
  sent_total bigint NOT NULL,
  done_total bigint NOT NULL,
  dead_total bigint NOT NULL,
  cancelled_total bigint NOT NULL,
  failed_total bigint NOT NULL,
  expired_total bigint NOT NULL,
  claimed_total bigint NOT NULL,
  oldest_ready_at bigint,
  wait_p50_ms bigint,
  wait_p95_ms bigint,
  work_p50_ms bigint,
  work_p95_ms bigint,
  is_for_lake smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (sample_no),
  CHECK (is_for_lake IN (0, 1)),
  UNIQUE (queue_no, minute_at),
  INDEX minute_counter_by_time (minute_at)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS move_task (
  task_id varchar(512) NOT NULL,
  source_no bigint NOT NULL,
  target_no bigint,
  state varchar(16) NOT NULL,
  max_per_second integer,
  to_move bigint NOT NULL,
  moved bigint NOT NULL,
  before_no bigint NOT NULL,
  credit bigint NOT NULL,
  paced_at bigint NOT NULL,
  started_at bigint NOT NULL,
  ended_at bigint,
  reason longtext,
  active_source_no bigint AS (
    CASE WHEN state IN ('running', 'cancelling') THEN source_no END) PERSISTENT,
  PRIMARY KEY (task_id),
  CHECK (state IN ('running', 'cancelling', 'completed', 'cancelled', 'failed')),
  UNIQUE INDEX move_task_active (active_source_no),
  INDEX move_task_by_source (source_no, before_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS node_queue (
  queue_no bigint NOT NULL,
  subscription_no bigint NOT NULL,
  node varchar(512) NOT NULL,
  PRIMARY KEY (queue_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS schedule (
  name varchar(512) NOT NULL,
  words longtext NOT NULL,
  is_paused smallint NOT NULL DEFAULT 0,
  next_at bigint,
  last_at bigint,
  last_id varchar(512),
  fired_total bigint NOT NULL DEFAULT 0,
  skipped_total bigint NOT NULL DEFAULT 0,
  last_error longtext,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  owner varchar(512),
  PRIMARY KEY (name),
  CHECK (is_paused IN (0, 1)),
  INDEX schedule_due (next_at, name),
  INDEX schedule_owner (owner)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS "signal" (
  name varchar(512) NOT NULL,
  body longtext NOT NULL,
  at bigint NOT NULL,
  until_at bigint NOT NULL,
  PRIMARY KEY (name),
  INDEX signal_by_end (until_at)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS signal_waiter (
  name varchar(512) NOT NULL,
  message_no bigint NOT NULL,
  step varchar(512) NOT NULL,
  at bigint NOT NULL,
  until_at bigint,
  lease_no bigint,
  PRIMARY KEY (name, message_no),
  INDEX signal_waiter_by_message (message_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS step (
  message_no bigint NOT NULL,
  name varchar(512) NOT NULL,
  step_no integer NOT NULL,
  outcome longtext NOT NULL,
  at bigint NOT NULL,
  day integer NOT NULL,
  kind varchar(16) NOT NULL DEFAULT 'step',
  lease_no bigint,
  took_ms bigint,
  PRIMARY KEY (message_no, name),
  CHECK (kind IN ('step', 'sleep', 'wait')),
  CHECK (step_no > 0),
  INDEX step_by_day (day)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS subscription (
  subscription_no bigint NOT NULL AUTO_INCREMENT,
  topic_no bigint NOT NULL,
  name varchar(512) NOT NULL,
  queue_no bigint NOT NULL,
  kinds longtext NOT NULL,
  dispatch varchar(16) NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (subscription_no),
  CHECK (dispatch IN ('shared', 'sticky')),
  UNIQUE INDEX subscription_by_name (topic_no, name),
  UNIQUE INDEX subscription_by_queue (queue_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS topic (
  topic_no bigint NOT NULL AUTO_INCREMENT,
  name varchar(512) NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (topic_no),
  UNIQUE (name)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS topic_counter (
  topic_no bigint NOT NULL,
  stripe smallint NOT NULL,
  published_total bigint NOT NULL DEFAULT 0,
  unmatched_total bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (topic_no, stripe)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS unhold_line (
  place bigint NOT NULL AUTO_INCREMENT,
  queue_no bigint NOT NULL,
  PRIMARY KEY (place),
  INDEX unhold_line_by_queue (queue_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS worker (
  worker_id varchar(512) NOT NULL,
  state varchar(16) NOT NULL,
  name longtext,
  host longtext,
  pid bigint,
  queues longtext NOT NULL,
  kinds longtext NOT NULL,
  slots bigint NOT NULL,
  labels longtext NOT NULL,
  registered_at bigint NOT NULL,
  beat_at bigint NOT NULL,
  alive_until bigint NOT NULL,
  ended_at bigint,
  PRIMARY KEY (worker_id),
  CHECK (slots > 0),
  CHECK (state IN ('active', 'draining', 'left', 'lost')),
  INDEX worker_gone (ended_at),
  INDEX worker_present (worker_id)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;
