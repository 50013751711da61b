-- Why: graphs of the last hour to months need the counters as they were at the end of each minute.
-- Number 0 in place of a queue's is all queues together.

CREATE TABLE minute_sample (
  queue_no        INTEGER NOT NULL,
  minute_at       INTEGER NOT NULL,
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
  PRIMARY KEY (queue_no, minute_at)
) WITHOUT ROWID;

CREATE INDEX minute_sample_by_time ON minute_sample (minute_at);
