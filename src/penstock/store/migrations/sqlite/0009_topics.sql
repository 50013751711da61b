-- Why: events are published to topics, and each subscription has a queue of its own.  Some queues
-- are for what one worker has published and is to handle itself.
-- (Messages are found by their tags in the order of message_no: SQLite's indexes have it anyway.)

CREATE TABLE topic (
  topic_no   INTEGER PRIMARY KEY AUTOINCREMENT,
  name       TEXT    NOT NULL UNIQUE,
  created_at INTEGER NOT NULL
);

CREATE TABLE topic_counter (
  topic_no        INTEGER NOT NULL,
  stripe          INTEGER NOT NULL,
  published_total INTEGER NOT NULL DEFAULT 0,
  unmatched_total INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (topic_no, stripe)
) WITHOUT ROWID;

CREATE TABLE subscription (
  subscription_no INTEGER PRIMARY KEY AUTOINCREMENT,
  topic_no        INTEGER NOT NULL,
  name            TEXT    NOT NULL,
  queue_no        INTEGER NOT NULL,
  kinds           TEXT    NOT NULL,
  dispatch        TEXT    NOT NULL CHECK (dispatch IN ('shared', 'sticky')),
  created_at      INTEGER NOT NULL
);

CREATE UNIQUE INDEX subscription_by_name ON subscription (topic_no, name);

-- One queue is not fed by two subscriptions.
CREATE UNIQUE INDEX subscription_by_queue ON subscription (queue_no);

CREATE TABLE node_queue (
  queue_no        INTEGER PRIMARY KEY,
  subscription_no INTEGER NOT NULL,
  node            TEXT    NOT NULL
);
