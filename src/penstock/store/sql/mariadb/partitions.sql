-- MariaDB commits at once what changes the schema: days are created and dropped outside of our
-- transactions (store/partitions.py).

-- name: lock
-- Only one node at a time drops a day.
SELECT slot
  FROM lock_slot
 WHERE purpose = 0
   AND slot = 2
   FOR UPDATE;

-- name: lock_new
-- Only one node at a time creates a day; the lock ends with the connection.
SELECT GET_LOCK(CONCAT('penstock_day_', LEFT(MD5(DATABASE()), 16)), 10);

-- name: all_tables
-- The tables of days, also of those that were dropped in part.
SELECT table_name
  FROM information_schema.tables
 WHERE table_schema = DATABASE()
   AND table_name REGEXP '^(history|attempt|attempt_log|body)_[0-9]+$';

-- name: create_history
-- One row per ending of a message on this day, with all indexes.  MariaDB's types.
CREATE TABLE IF NOT EXISTS history_{day} (
  history_no      bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  id              varchar(512) NOT NULL,
  message_no      bigint NOT NULL,
  queue_no        bigint NOT NULL,
  outcome         varchar(512) NOT NULL,
  reason          longtext,
  kind            varchar(512),
  entity_id       varchar(512),
  tag1            varchar(512),
  tag2            varchar(512),
  group_key       varchar(512),
  priority        integer NOT NULL,
  sent_at         bigint NOT NULL,
  due_at          bigint NOT NULL,
  first_leased_at bigint,
  leased_at       bigint,
  finished_at     bigint NOT NULL,
  attempts        integer NOT NULL,
  failures        integer NOT NULL,
  lease_no        integer NOT NULL,
  leased_by       varchar(512),
  last_error      longtext,
  size            integer NOT NULL,
  body_day        integer NOT NULL,
  route           varchar(512),
  crashes         integer NOT NULL DEFAULT 0,
  held_key        varchar(512),
  result          longtext,
  flow_no         bigint,
  INDEX history_by_id (id),
  INDEX history_by_queue (queue_no, finished_at),
  INDEX history_by_kind (kind, finished_at),
  INDEX history_by_tag1 (tag1, finished_at),
  INDEX history_by_tag2 (tag2, finished_at),
  INDEX history_by_time (finished_at)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

-- name: create_attempt
-- One row per lease that ended without finishing its message on this day.  MariaDB's types.
CREATE TABLE IF NOT EXISTS attempt_{day} (
  attempt_no bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  id         varchar(512) NOT NULL,
  message_no bigint NOT NULL,
  queue_no   bigint NOT NULL,
  lease_no   integer NOT NULL,
  outcome    varchar(512) NOT NULL,
  leased_at  bigint,
  ended_at   bigint NOT NULL,
  leased_by  varchar(512),
  error      longtext,
  INDEX attempt_by_id (id)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

-- name: create_attempt_log
-- What handlers logged on this day.  MariaDB's types.
CREATE TABLE IF NOT EXISTS attempt_log_{day} (
  message_no bigint  NOT NULL,
  lease_no   integer NOT NULL,
  seq        integer NOT NULL,
  lines      longtext    NOT NULL,
  PRIMARY KEY (message_no, lease_no, seq)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

-- name: create_body
-- Contents of messages sent on this day; never changed, so state changes stay small.
-- MariaDB's types.
CREATE TABLE IF NOT EXISTS body_{day} (
  message_no bigint PRIMARY KEY,
  body       longtext NOT NULL,
  attributes longtext,
  trace      longtext
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;

-- name: create_history_by_id
-- Nothing to do: create_history has it.

-- name: create_history_by_queue
-- Nothing to do: create_history has it.

-- name: create_history_by_kind
-- Nothing to do: create_history has it.

-- name: create_history_by_tag1
-- Nothing to do: create_history has it.

-- name: create_history_by_tag2
-- Nothing to do: create_history has it.

-- name: create_history_by_time
-- Nothing to do: create_history has it.

-- name: create_attempt_by_id
-- Nothing to do: create_attempt has it.
