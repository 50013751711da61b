-- Why: graphs and the lake each had a table of the same counters, read by two samplers every minute.
-- One table serves both; rows with is_for_lake are written to the lake, in the order of their numbers.

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

-- Rows that are not in the lake yet keep their numbers.
INSERT INTO minute_counter (
  sample_no, queue_no, minute_at, at, waiting, ready, leased, dead, sent_total, done_total,
  dead_total, cancelled_total, failed_total, expired_total, claimed_total, oldest_ready_at,
  wait_p50_ms, wait_p95_ms, work_p50_ms, work_p95_ms, is_for_lake)
SELECT b.sample_no, b.queue_no, b.at - b.at % 60000, b.at, b.waiting, b.ready, b.leased, b.dead,
       b.sent_total, b.done_total, b.dead_total, b.cancelled_total, b.failed_total,
       b.expired_total, b.claimed_total, m.oldest_ready_at, m.wait_p50_ms, m.wait_p95_ms,
       m.work_p50_ms, m.work_p95_ms, 1
  FROM backlog_sample AS b
  LEFT JOIN minute_sample AS m
    ON m.queue_no = b.queue_no
   AND m.minute_at = b.at - b.at % 60000
 WHERE b.sample_no > (
         SELECT coalesce(max(a.done_no), 0)
           FROM archive_mark AS a
          WHERE a.source = 'backlog'
       )
 ORDER BY b.sample_no
    ON CONFLICT (queue_no, minute_at) DO NOTHING;

-- New numbers continue after those that the lake has.
DELETE FROM sqlite_sequence
      WHERE name = 'minute_counter';

INSERT INTO sqlite_sequence (name, seq)
SELECT 'minute_counter', seq
  FROM sqlite_sequence
 WHERE name = 'backlog_sample';

INSERT INTO minute_counter (
  queue_no, minute_at, at, waiting, ready, leased, dead, sent_total, done_total, dead_total,
  cancelled_total, failed_total, expired_total, claimed_total, oldest_ready_at, wait_p50_ms,
  wait_p95_ms, work_p50_ms, work_p95_ms)
SELECT queue_no, minute_at, minute_at, waiting, ready, leased, dead, sent_total, done_total,
       dead_total, cancelled_total, failed_total, expired_total, claimed_total, oldest_ready_at,
       wait_p50_ms, wait_p95_ms, work_p50_ms, work_p95_ms
  FROM minute_sample
 WHERE true
 ORDER BY minute_at, queue_no
    ON CONFLICT (queue_no, minute_at) DO NOTHING;

DROP TABLE backlog_sample;

DROP TABLE minute_sample;
