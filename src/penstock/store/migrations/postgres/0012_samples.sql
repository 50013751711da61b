-- Why: graphs of the last hour to months need the counters as they were at the end of each minute.
-- Number 0 in place of a queue's is all queues together.

CREATE TABLE minute_sample (
  queue_no        bigint NOT NULL,
  minute_at       bigint NOT NULL,
  waiting         bigint NOT NULL,
  ready           bigint NOT NULL,
  leased          bigint NOT NULL,
  dead            bigint NOT NULL,
  sent_total      bigint NOT NULL,
  done_total      bigint NOT NULL,
  dead_total      bigint NOT NULL,
  cancelled_total bigint NOT NULL,
  failed_total    bigint NOT NULL,
  expired_total   bigint NOT NULL,
  claimed_total   bigint NOT NULL,
  oldest_ready_at bigint,
  wait_p50_ms     bigint,
  wait_p95_ms     bigint,
  work_p50_ms     bigint,
  work_p95_ms     bigint,
  PRIMARY KEY (queue_no, minute_at)
);

CREATE INDEX minute_sample_by_time ON minute_sample (minute_at);
