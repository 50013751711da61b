-- Generated from the migrations by `make schema`; not read by the program.

CREATE TABLE api_key (
  key_id varchar(512) NOT NULL,
  name longtext NOT NULL,
  secret_hash longtext NOT NULL,
  roles longtext NOT NULL,
  queues longtext NOT NULL,
  created_at bigint(20) NOT NULL,
  revoked_at bigint(20) DEFAULT NULL,
  signed_with varchar(512) DEFAULT NULL,
  expires_at bigint(20) DEFAULT NULL,
  last_used_at bigint(20) DEFAULT NULL,
  PRIMARY KEY (key_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE archive_mark (
  source varchar(512) NOT NULL,
  day int(11) NOT NULL,
  done_no bigint(20) NOT NULL DEFAULT 0,
  planned_no bigint(20) NOT NULL DEFAULT 0,
  rows_total bigint(20) NOT NULL DEFAULT 0,
  is_closed smallint(6) NOT NULL DEFAULT 0,
  moved_at bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (source,day),
  CONSTRAINT CONSTRAINT_1 CHECK (done_no <= planned_no),
  CONSTRAINT CONSTRAINT_2 CHECK (is_closed in (0,1))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE circuit (
  circuit_no bigint(20) NOT NULL AUTO_INCREMENT,
  hash varchar(512) NOT NULL,
  pattern longtext NOT NULL,
  state varchar(16) NOT NULL,
  fail_ratio bigint(20) NOT NULL DEFAULT 0,
  opened_at bigint(20) DEFAULT NULL,
  reopened bigint(20) NOT NULL DEFAULT 0,
  is_forced smallint(6) NOT NULL DEFAULT 0,
  generation bigint(20) NOT NULL DEFAULT 0,
  probe_until bigint(20) NOT NULL DEFAULT 0,
  successes bigint(20) NOT NULL DEFAULT 0,
  failures bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (circuit_no),
  UNIQUE INDEX hash (hash),
  INDEX circuit_not_closed (state,hash),
  CONSTRAINT CONSTRAINT_1 CHECK (is_forced in (0,1)),
  CONSTRAINT CONSTRAINT_2 CHECK (state in ('closed','open','half_open'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE circuit_hold (
  circuit_no bigint(20) NOT NULL,
  queue_no bigint(20) NOT NULL,
  at bigint(20) NOT NULL,
  PRIMARY KEY (circuit_no,queue_no),
  INDEX circuit_hold_by_queue (queue_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE circuit_sample (
  circuit_no bigint(20) NOT NULL,
  is_failure smallint(6) NOT NULL,
  request_id varchar(512) NOT NULL,
  at bigint(20) NOT NULL,
  PRIMARY KEY (circuit_no,is_failure,request_id),
  INDEX circuit_sample_by_time (circuit_no,is_failure,at,request_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE claim_key (
  queue_no bigint(20) NOT NULL,
  claim_key varchar(700) NOT NULL,
  given longtext NOT NULL,
  until_at bigint(20) NOT NULL,
  PRIMARY KEY (queue_no,claim_key),
  INDEX claim_key_by_end (until_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE counter (
  queue_no bigint(20) NOT NULL,
  stripe smallint(6) NOT NULL,
  waiting bigint(20) NOT NULL DEFAULT 0,
  ready bigint(20) NOT NULL DEFAULT 0,
  leased bigint(20) NOT NULL DEFAULT 0,
  dead bigint(20) NOT NULL DEFAULT 0,
  sent_total bigint(20) NOT NULL DEFAULT 0,
  done_total bigint(20) NOT NULL DEFAULT 0,
  dead_total bigint(20) NOT NULL DEFAULT 0,
  cancelled_total bigint(20) NOT NULL DEFAULT 0,
  failed_total bigint(20) NOT NULL DEFAULT 0,
  expired_total bigint(20) NOT NULL DEFAULT 0,
  claimed_total bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (queue_no,stripe)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE day (
  day int(11) NOT NULL,
  PRIMARY KEY (day)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE dedup (
  queue_no bigint(20) NOT NULL,
  dedup_key varchar(700) NOT NULL,
  id varchar(512) NOT NULL,
  until_at bigint(20) NOT NULL,
  message_no bigint(20) DEFAULT NULL,
  PRIMARY KEY (queue_no,dedup_key),
  INDEX dedup_by_end (until_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE document (
  name varchar(512) NOT NULL,
  text longtext DEFAULT NULL,
  version bigint(20) NOT NULL,
  changed_at bigint(20) NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE duty (
  name varchar(512) NOT NULL,
  until_at bigint(20) NOT NULL,
  holder longtext NOT NULL,
  ticks bigint(20) NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE fact (
  fact_no bigint(20) NOT NULL AUTO_INCREMENT,
  at bigint(20) NOT NULL,
  kind varchar(512) NOT NULL,
  subject varchar(512) NOT NULL,
  data longtext NOT NULL,
  PRIMARY KEY (fact_no),
  INDEX fact_by_kind (kind,at,fact_no),
  INDEX fact_by_subject (subject,at,fact_no),
  INDEX fact_by_time (at,fact_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE fair_line (
  queue_no bigint(20) NOT NULL,
  priority int(11) NOT NULL,
  passed_no bigint(20) NOT NULL,
  PRIMARY KEY (queue_no,priority)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE fair_share (
  queue_no bigint(20) NOT NULL,
  priority int(11) NOT NULL,
  group_key varchar(512) NOT NULL,
  finish_no bigint(20) NOT NULL,
  PRIMARY KEY (queue_no,priority,group_key),
  INDEX fair_share_by_finish (queue_no,priority,finish_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE flow (
  flow_no bigint(20) NOT NULL AUTO_INCREMENT,
  id varchar(512) NOT NULL,
  name varchar(512) NOT NULL,
  queues longtext NOT NULL,
  created_at bigint(20) NOT NULL,
  ended_at bigint(20) DEFAULT NULL,
  is_open smallint(6) NOT NULL,
  is_cancelled smallint(6) NOT NULL,
  total int(11) NOT NULL,
  remaining int(11) NOT NULL,
  done int(11) NOT NULL,
  failed int(11) NOT NULL,
  skipped int(11) NOT NULL,
  outcome varchar(16) DEFAULT NULL,
  created_by varchar(512) DEFAULT NULL,
  PRIMARY KEY (flow_no),
  UNIQUE INDEX id (id),
  INDEX flow_by_creator (created_by),
  INDEX flow_by_end (ended_at),
  INDEX flow_by_name (name,created_at,flow_no),
  INDEX flow_by_outcome (outcome,created_at,flow_no),
  INDEX flow_by_time (created_at,flow_no),
  CONSTRAINT CONSTRAINT_1 CHECK (total = remaining + done + failed + skipped),
  CONSTRAINT CONSTRAINT_2 CHECK (outcome is null = (ended_at is null)),
  CONSTRAINT CONSTRAINT_3 CHECK (done >= 0),
  CONSTRAINT CONSTRAINT_4 CHECK (failed >= 0),
  CONSTRAINT CONSTRAINT_5 CHECK (is_cancelled in (0,1)),
  CONSTRAINT CONSTRAINT_6 CHECK (is_open in (0,1)),
  CONSTRAINT CONSTRAINT_7 CHECK (outcome in ('done','failed','cancelled')),
  CONSTRAINT CONSTRAINT_8 CHECK (remaining >= 0),
  CONSTRAINT CONSTRAINT_9 CHECK (skipped >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE flow_edge (
  parent_no bigint(20) NOT NULL,
  child_no bigint(20) NOT NULL,
  runs_on varchar(16) NOT NULL,
  outcome varchar(16) DEFAULT NULL,
  PRIMARY KEY (parent_no,child_no),
  INDEX flow_edge_by_child (child_no),
  CONSTRAINT CONSTRAINT_1 CHECK (outcome in ('done','failed','skipped')),
  CONSTRAINT CONSTRAINT_2 CHECK (runs_on in ('done','ended','failed'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE flow_key (
  name varchar(256) NOT NULL,
  dedup_key varchar(500) NOT NULL,
  flow_no bigint(20) NOT NULL,
  taken_until bigint(20) NOT NULL,
  PRIMARY KEY (name,dedup_key),
  INDEX flow_key_by_flow (flow_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE flow_member (
  message_no bigint(20) NOT NULL,
  flow_no bigint(20) NOT NULL,
  id varchar(512) NOT NULL,
  name varchar(512) DEFAULT NULL,
  kind varchar(512) DEFAULT NULL,
  queue_no bigint(20) NOT NULL,
  role varchar(16) NOT NULL,
  state varchar(16) NOT NULL,
  waits_for int(11) NOT NULL,
  handles int(11) NOT NULL,
  failures int(11) NOT NULL,
  reason longtext DEFAULT NULL,
  ended_at bigint(20) DEFAULT NULL,
  is_wanted smallint(6) NOT NULL,
  result longtext DEFAULT NULL,
  draft longtext DEFAULT NULL,
  PRIMARY KEY (message_no),
  UNIQUE INDEX id (id),
  UNIQUE INDEX flow_no (flow_no,name),
  INDEX flow_callback (flow_no),
  INDEX flow_member_by_flow (flow_no,message_no),
  INDEX flow_member_by_state (flow_no,state,message_no),
  CONSTRAINT CONSTRAINT_1 CHECK (failures >= 0),
  CONSTRAINT CONSTRAINT_2 CHECK (handles >= 0),
  CONSTRAINT CONSTRAINT_3 CHECK (is_wanted in (0,1)),
  CONSTRAINT CONSTRAINT_4 CHECK (role in ('member','on_success','on_failure','on_finish')),
  CONSTRAINT CONSTRAINT_5 CHECK (state in ('blocked','released','done','dead','cancelled','skipped')),
  CONSTRAINT CONSTRAINT_6 CHECK (waits_for >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE lock_slot (
  purpose smallint(6) NOT NULL,
  slot int(11) NOT NULL,
  PRIMARY KEY (purpose,slot)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE login (
  token_hash varchar(512) NOT NULL,
  key_id varchar(512) NOT NULL,
  until_at bigint(20) NOT NULL,
  PRIMARY KEY (token_hash),
  INDEX login_by_end (until_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE message (
  id varchar(512) NOT NULL,
  queue_no bigint(20) NOT NULL,
  due_at bigint(20) NOT NULL,
  sent_at bigint(20) NOT NULL,
  message_no bigint(20) NOT NULL,
  state varchar(16) NOT NULL,
  order_no bigint(20) NOT NULL,
  priority int(11) NOT NULL,
  expires_at bigint(20) DEFAULT NULL,
  attempts int(11) NOT NULL DEFAULT 0,
  max_attempts int(11) DEFAULT NULL,
  failures int(11) NOT NULL DEFAULT 0,
  lease_no int(11) NOT NULL DEFAULT 0,
  is_blocked smallint(6) NOT NULL,
  group_key varchar(512) DEFAULT NULL,
  kind varchar(512) DEFAULT NULL,
  entity_id varchar(512) DEFAULT NULL,
  tag1 varchar(512) DEFAULT NULL,
  tag2 varchar(512) DEFAULT NULL,
  dedup_key varchar(512) DEFAULT NULL,
  first_leased_at bigint(20) DEFAULT NULL,
  leased_at bigint(20) DEFAULT NULL,
  leased_by varchar(512) DEFAULT NULL,
  last_error longtext DEFAULT NULL,
  dead_from bigint(20) DEFAULT NULL,
  reason longtext DEFAULT NULL,
  size int(11) NOT NULL,
  body_day int(11) NOT NULL,
  timeout_ms bigint(20) DEFAULT NULL,
  retries_timeouts smallint(6) NOT NULL DEFAULT 0,
  started_at bigint(20) DEFAULT NULL,
  crashes int(11) NOT NULL DEFAULT 0,
  dedup_until varchar(16) DEFAULT NULL,
  progress longtext DEFAULT NULL,
  route varchar(512) DEFAULT NULL,
  turn bigint(20) NOT NULL DEFAULT 0,
  gate smallint(6) NOT NULL DEFAULT 0,
  flow_no bigint(20) DEFAULT NULL,
  live_group varchar(512) GENERATED ALWAYS AS (case when state in ('waiting','ready','leased') then group_key end) STORED,
  ready_kind varchar(512) GENERATED ALWAYS AS (case when state = 'ready' then kind end) STORED,
  unclaimed_until bigint(20) GENERATED ALWAYS AS (case when state in ('waiting','ready') then expires_at end) STORED,
  dead_no bigint(20) GENERATED ALWAYS AS (case when state = 'dead' then message_no end) STORED,
  PRIMARY KEY (message_no),
  UNIQUE INDEX message_by_id (id),
  INDEX message_by_tag1 (tag1,message_no),
  INDEX message_by_tag2 (tag2,message_no),
  INDEX message_at_rest (queue_no,dead_no),
  INDEX message_gated (queue_no,gate,group_key,priority,turn,order_no),
  INDEX message_in_group (queue_no,live_group,order_no),
  INDEX message_of_kind (queue_no,ready_kind,is_blocked,priority,turn,order_no),
  INDEX message_to_claim (queue_no,state,is_blocked,priority,turn,order_no),
  INDEX message_to_expire (queue_no,unclaimed_until),
  INDEX message_to_fall_due (queue_no,state,due_at,order_no),
  CONSTRAINT CONSTRAINT_1 CHECK (attempts >= 0),
  CONSTRAINT CONSTRAINT_2 CHECK (dedup_until in ('claimed','ended')),
  CONSTRAINT CONSTRAINT_3 CHECK (gate in (0,1,2)),
  CONSTRAINT CONSTRAINT_4 CHECK (is_blocked in (0,1)),
  CONSTRAINT CONSTRAINT_5 CHECK (lease_no >= 0),
  CONSTRAINT CONSTRAINT_6 CHECK (retries_timeouts in (0,1)),
  CONSTRAINT CONSTRAINT_7 CHECK (state in ('waiting','ready','leased','dead'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE SEQUENCE message_no start with 1 minvalue 1 maxvalue 9223372036854775806 increment by 1 cache 1000 nocycle ENGINE=InnoDB;

CREATE TABLE meta (
  name varchar(512) NOT NULL,
  value longtext NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE migration (
  number int(11) NOT NULL,
  name varchar(512) NOT NULL,
  checksum varchar(512) NOT NULL,
  applied_at bigint(20) NOT NULL,
  PRIMARY KEY (number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE minute_counter (
  sample_no bigint(20) NOT NULL AUTO_INCREMENT,
  queue_no bigint(20) NOT NULL,
  minute_at bigint(20) NOT NULL,
  at bigint(20) NOT NULL,
  waiting bigint(20) NOT NULL,
  ready bigint(20) NOT NULL,
  leased bigint(20) NOT NULL,
  dead bigint(20) NOT NULL,
  sent_total bigint(20) NOT NULL,
  done_total bigint(20) NOT NULL,
  dead_total bigint(20) NOT NULL,
  cancelled_total bigint(20) NOT NULL,
  failed_total bigint(20) NOT NULL,
  expired_total bigint(20) NOT NULL,
  claimed_total bigint(20) NOT NULL,
  oldest_ready_at bigint(20) DEFAULT NULL,
  wait_p50_ms bigint(20) DEFAULT NULL,
  wait_p95_ms bigint(20) DEFAULT NULL,
  work_p50_ms bigint(20) DEFAULT NULL,
  work_p95_ms bigint(20) DEFAULT NULL,
  is_for_lake smallint(6) NOT NULL DEFAULT 0,
  PRIMARY KEY (sample_no),
  UNIQUE INDEX queue_no (queue_no,minute_at),
  INDEX minute_counter_by_time (minute_at),
  CONSTRAINT CONSTRAINT_1 CHECK (is_for_lake in (0,1))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE move_task (
  task_id varchar(512) NOT NULL,
  source_no bigint(20) NOT NULL,
  target_no bigint(20) DEFAULT NULL,
  state varchar(16) NOT NULL,
  max_per_second int(11) DEFAULT NULL,
  to_move bigint(20) NOT NULL,
  moved bigint(20) NOT NULL,
  before_no bigint(20) NOT NULL,
  credit bigint(20) NOT NULL,
  paced_at bigint(20) NOT NULL,
  started_at bigint(20) NOT NULL,
  ended_at bigint(20) DEFAULT NULL,
  reason longtext DEFAULT NULL,
  active_source_no bigint(20) GENERATED ALWAYS AS (case when state in ('running','cancelling') then source_no end) STORED,
  PRIMARY KEY (task_id),
  UNIQUE INDEX move_task_active (active_source_no),
  INDEX move_task_by_source (source_no,before_no),
  CONSTRAINT CONSTRAINT_1 CHECK (state in ('running','cancelling','completed','cancelled','failed'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE node_queue (
  queue_no bigint(20) NOT NULL,
  subscription_no bigint(20) NOT NULL,
  node varchar(512) NOT NULL,
  PRIMARY KEY (queue_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE pace (
  queue_no bigint(20) NOT NULL,
  group_key varchar(512) NOT NULL,
  credit bigint(20) NOT NULL,
  paced_at bigint(20) NOT NULL,
  full_at bigint(20) NOT NULL,
  PRIMARY KEY (queue_no,group_key),
  INDEX pace_by_end (full_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE queue (
  queue_no bigint(20) NOT NULL AUTO_INCREMENT,
  name varchar(512) NOT NULL,
  settings longtext NOT NULL,
  is_paused smallint(6) NOT NULL DEFAULT 0,
  version bigint(20) NOT NULL DEFAULT 1,
  created_at bigint(20) NOT NULL,
  removed_at bigint(20) DEFAULT NULL,
  changed_at bigint(20) NOT NULL DEFAULT 0,
  held_by varchar(512) DEFAULT NULL,
  live_name varchar(512) GENERATED ALWAYS AS (case when removed_at is null then name end) STORED,
  PRIMARY KEY (queue_no),
  UNIQUE INDEX queue_by_live_name (live_name),
  INDEX queue_by_name (name),
  INDEX queue_held (held_by,queue_no),
  CONSTRAINT CONSTRAINT_1 CHECK (is_paused in (0,1))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE schedule (
  name varchar(512) NOT NULL,
  words longtext NOT NULL,
  is_paused smallint(6) NOT NULL DEFAULT 0,
  next_at bigint(20) DEFAULT NULL,
  last_at bigint(20) DEFAULT NULL,
  last_id varchar(512) DEFAULT NULL,
  fired_total bigint(20) NOT NULL DEFAULT 0,
  skipped_total bigint(20) NOT NULL DEFAULT 0,
  last_error longtext DEFAULT NULL,
  created_at bigint(20) NOT NULL,
  changed_at bigint(20) NOT NULL,
  owner varchar(512) DEFAULT NULL,
  PRIMARY KEY (name),
  INDEX schedule_due (next_at,name),
  INDEX schedule_owner (owner),
  CONSTRAINT CONSTRAINT_1 CHECK (is_paused in (0,1))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE signal (
  name varchar(512) NOT NULL,
  body longtext NOT NULL,
  at bigint(20) NOT NULL,
  until_at bigint(20) NOT NULL,
  PRIMARY KEY (name),
  INDEX signal_by_end (until_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE signal_waiter (
  name varchar(512) NOT NULL,
  message_no bigint(20) NOT NULL,
  step varchar(512) NOT NULL,
  at bigint(20) NOT NULL,
  until_at bigint(20) DEFAULT NULL,
  lease_no bigint(20) DEFAULT NULL,
  PRIMARY KEY (name,message_no),
  INDEX signal_waiter_by_message (message_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE step (
  message_no bigint(20) NOT NULL,
  name varchar(512) NOT NULL,
  step_no int(11) NOT NULL,
  outcome longtext NOT NULL,
  at bigint(20) NOT NULL,
  day int(11) NOT NULL,
  kind varchar(16) NOT NULL DEFAULT 'step',
  lease_no bigint(20) DEFAULT NULL,
  took_ms bigint(20) DEFAULT NULL,
  PRIMARY KEY (message_no,name),
  INDEX step_by_day (day),
  CONSTRAINT CONSTRAINT_1 CHECK (kind in ('step','sleep','wait')),
  CONSTRAINT CONSTRAINT_2 CHECK (step_no > 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE subscription (
  subscription_no bigint(20) NOT NULL AUTO_INCREMENT,
  topic_no bigint(20) NOT NULL,
  name varchar(512) NOT NULL,
  queue_no bigint(20) NOT NULL,
  kinds longtext NOT NULL,
  dispatch varchar(16) NOT NULL,
  created_at bigint(20) NOT NULL,
  settings longtext NOT NULL DEFAULT '{}',
  PRIMARY KEY (subscription_no),
  UNIQUE INDEX subscription_by_name (topic_no,name),
  INDEX subscription_by_queue (queue_no),
  CONSTRAINT CONSTRAINT_1 CHECK (dispatch in ('shared','sticky'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE topic (
  topic_no bigint(20) NOT NULL AUTO_INCREMENT,
  name varchar(512) NOT NULL,
  created_at bigint(20) NOT NULL,
  settings longtext NOT NULL DEFAULT '{}',
  revision bigint(20) NOT NULL DEFAULT 0,
  numbered bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (topic_no),
  UNIQUE INDEX name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE topic_counter (
  topic_no bigint(20) NOT NULL,
  stripe smallint(6) NOT NULL,
  published_total bigint(20) NOT NULL DEFAULT 0,
  unmatched_total bigint(20) NOT NULL DEFAULT 0,
  PRIMARY KEY (topic_no,stripe)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE unhold_line (
  place bigint(20) NOT NULL AUTO_INCREMENT,
  queue_no bigint(20) NOT NULL,
  PRIMARY KEY (place),
  INDEX unhold_line_by_queue (queue_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE wakeup (
  wakeup_no bigint(20) NOT NULL AUTO_INCREMENT,
  at bigint(20) NOT NULL,
  sender bigint(20) NOT NULL,
  hints varchar(1000) NOT NULL,
  PRIMARY KEY (wakeup_no)
) ENGINE=MEMORY DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE worker (
  worker_id varchar(512) NOT NULL,
  state varchar(16) NOT NULL,
  name longtext DEFAULT NULL,
  host longtext DEFAULT NULL,
  pid bigint(20) DEFAULT NULL,
  queues longtext NOT NULL,
  kinds longtext NOT NULL,
  slots bigint(20) NOT NULL,
  labels longtext NOT NULL,
  registered_at bigint(20) NOT NULL,
  beat_at bigint(20) NOT NULL,
  alive_until bigint(20) NOT NULL,
  ended_at bigint(20) DEFAULT NULL,
  PRIMARY KEY (worker_id),
  INDEX worker_gone (ended_at),
  INDEX worker_present (worker_id),
  CONSTRAINT CONSTRAINT_1 CHECK (slots > 0),
  CONSTRAINT CONSTRAINT_2 CHECK (state in ('active','draining','left','lost'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;
