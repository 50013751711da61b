-- Why: the first part of the schema.  With the next migration it equals that of the other databases
-- after their migration of that number; there are no older stores.
--
-- MariaDB commits each of these statements by itself, so each can be repeated: a migration that was
-- interrupted runs again from its beginning.
--
-- A partial index of the other databases is a longer index here, or one on a generated column, which
-- is NULL where the other index has no entry: a claim then changes few indexes.

CREATE SEQUENCE IF NOT EXISTS message_no CACHE 1000 ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS api_key (
  key_id varchar(512) NOT NULL,
  name longtext NOT NULL,
  secret_hash longtext NOT NULL,
  roles longtext NOT NULL,
  queues longtext NOT NULL,
  created_at bigint NOT NULL,
  revoked_at bigint,
  signed_with varchar(512),
  PRIMARY KEY (key_id)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS claim_key (
  queue_no bigint NOT NULL,
  claim_key varchar(700) NOT NULL,
  given longtext NOT NULL,
  until_at bigint NOT NULL,
  PRIMARY KEY (queue_no, claim_key),
  INDEX claim_key_by_end (until_at)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS counter (
  queue_no bigint NOT NULL,
  stripe smallint NOT NULL,
  waiting bigint NOT NULL DEFAULT 0,
  ready bigint NOT NULL DEFAULT 0,
  leased bigint NOT NULL DEFAULT 0,
  dead bigint NOT NULL DEFAULT 0,
  sent_total bigint NOT NULL DEFAULT 0,
  done_total bigint NOT NULL DEFAULT 0,
  dead_total bigint NOT NULL DEFAULT 0,
  cancelled_total bigint NOT NULL DEFAULT 0,
  failed_total bigint NOT NULL DEFAULT 0,
  expired_total bigint NOT NULL DEFAULT 0,
  claimed_total bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (queue_no, stripe)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS day (
  day integer NOT NULL,
  PRIMARY KEY (day)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS dedup (
  queue_no bigint NOT NULL,
  dedup_key varchar(700) NOT NULL,
  id varchar(512) NOT NULL,
  until_at bigint NOT NULL,
  message_no bigint,
  PRIMARY KEY (queue_no, dedup_key),
  INDEX dedup_by_end (until_at)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS document (
  name varchar(512) NOT NULL,
  text longtext,
  version bigint NOT NULL,
  changed_at bigint NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS duty (
  name varchar(512) NOT NULL,
  until_at bigint NOT NULL,
  holder longtext NOT NULL,
  ticks bigint NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS fair_line (
  queue_no bigint NOT NULL,
  priority integer NOT NULL,
  passed_no bigint NOT NULL,
  PRIMARY KEY (queue_no, priority)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS fair_share (
  queue_no bigint NOT NULL,
  priority integer NOT NULL,
  group_key varchar(512) NOT NULL,
  finish_no bigint NOT NULL,
  PRIMARY KEY (queue_no, priority, group_key),
  INDEX fair_share_by_finish (queue_no, priority, finish_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS login (
  token_hash varchar(512) NOT NULL,
  key_id varchar(512) NOT NULL,
  until_at bigint NOT NULL,
  PRIMARY KEY (token_hash),
  INDEX login_by_end (until_at)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS message (
  id varchar(512) NOT NULL,
  queue_no bigint NOT NULL,
  due_at bigint NOT NULL,
  sent_at bigint NOT NULL,
  message_no bigint NOT NULL,
  state varchar(16) NOT NULL,
  order_no bigint NOT NULL,
  priority integer NOT NULL,
  expires_at bigint,
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer,
  failures integer NOT NULL DEFAULT 0,
  lease_no integer NOT NULL DEFAULT 0,
  is_blocked smallint NOT NULL,
  group_key varchar(512),
  kind varchar(512),
  entity_id varchar(512),
  tag1 varchar(512),
  tag2 varchar(512),
  dedup_key varchar(512),
  first_leased_at bigint,
  leased_at bigint,
  leased_by varchar(512),
  last_error longtext,
  dead_from bigint,
  reason longtext,
  size integer NOT NULL,
  body_day integer NOT NULL,
  timeout_ms bigint,
  retries_timeouts smallint NOT NULL DEFAULT 0,
  started_at bigint,
  crashes integer NOT NULL DEFAULT 0,
  dedup_until varchar(16),
  progress longtext,
  route varchar(512),
  turn bigint NOT NULL DEFAULT 0,
  gate smallint NOT NULL DEFAULT 0,
  flow_no bigint,
  live_group varchar(512) AS (
    CASE WHEN state IN ('waiting', 'ready', 'leased') THEN group_key END) PERSISTENT,
  ready_kind varchar(512) AS (CASE WHEN state = 'ready' THEN kind END) PERSISTENT,
  unclaimed_until bigint AS (
    CASE WHEN state IN ('waiting', 'ready') THEN expires_at END) PERSISTENT,
  dead_no bigint AS (CASE WHEN state = 'dead' THEN message_no END) PERSISTENT,
  PRIMARY KEY (message_no),
  CHECK (attempts >= 0),
  CHECK (dedup_until IN ('claimed', 'ended')),
  CHECK (gate IN (0, 1, 2)),
  CHECK (is_blocked IN (0, 1)),
  CHECK (lease_no >= 0),
  CHECK (retries_timeouts IN (0, 1)),
  CHECK (state IN ('waiting', 'ready', 'leased', 'dead')),
  UNIQUE INDEX message_by_id (id),
  INDEX message_by_tag1 (tag1, message_no),
  INDEX message_by_tag2 (tag2, message_no),
  INDEX message_at_rest (queue_no, dead_no),
  INDEX message_gated (queue_no, gate, group_key, priority, turn, order_no),
  INDEX message_in_group (queue_no, live_group, order_no),
  INDEX message_of_kind (queue_no, ready_kind, is_blocked, priority, turn, order_no),
  INDEX message_to_claim (queue_no, state, is_blocked, priority, turn, order_no),
  INDEX message_to_expire (queue_no, unclaimed_until),
  INDEX message_to_fall_due (queue_no, state, due_at, order_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS meta (
  name varchar(512) NOT NULL,
  value longtext NOT NULL,
  PRIMARY KEY (name)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS pace (
  queue_no bigint NOT NULL,
  group_key varchar(512) NOT NULL,
  credit bigint NOT NULL,
  paced_at bigint NOT NULL,
  full_at bigint NOT NULL,
  PRIMARY KEY (queue_no, group_key),
  INDEX pace_by_end (full_at)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS queue (
  queue_no bigint NOT NULL AUTO_INCREMENT,
  name varchar(512) NOT NULL,
  settings longtext NOT NULL,
  is_paused smallint NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 1,
  created_at bigint NOT NULL,
  removed_at bigint,
  changed_at bigint NOT NULL DEFAULT 0,
  held_by varchar(512),
  live_name varchar(512) AS (CASE WHEN removed_at IS NULL THEN name END) PERSISTENT,
  PRIMARY KEY (queue_no),
  CHECK (is_paused IN (0, 1)),
  INDEX queue_by_name (name),
  UNIQUE INDEX queue_by_live_name (live_name),
  INDEX queue_held (held_by, queue_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

-- Rows that stand for locks: MariaDB's own named locks do not end with a transaction.
CREATE TABLE IF NOT EXISTS lock_slot (
  purpose smallint NOT NULL,
  slot integer NOT NULL,
  PRIMARY KEY (purpose, slot)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

INSERT IGNORE INTO lock_slot (purpose, slot)
SELECT p.seq, s.seq
  FROM seq_0_to_6 AS p
 CROSS JOIN seq_0_to_2047 AS s;

-- Hints for other nodes; in memory, because a lost hint only costs time.
CREATE TABLE IF NOT EXISTS wakeup (
  wakeup_no bigint NOT NULL AUTO_INCREMENT,
  at bigint NOT NULL,
  sender bigint NOT NULL,
  hints varchar(1000) NOT NULL,
  PRIMARY KEY (wakeup_no)
) ENGINE = MEMORY, COLLATE = utf8mb4_nopad_bin;
