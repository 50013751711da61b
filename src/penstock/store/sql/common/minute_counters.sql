-- name: add
-- A minute that was sampled already keeps its counters; it goes to the lake if either sample is
-- for the lake.
INSERT INTO minute_counter (
  queue_no, minute_at, waiting, ready, leased, dead, sent_total, done_total, dead_total,
  cancelled_total, failed_total, expired_total, claimed_total, oldest_ready_at, wait_p50_ms,
  wait_p95_ms, work_p50_ms, work_p95_ms, at, is_for_lake)
VALUES (
  :queue_no, :minute_at, :waiting, :ready, :leased, :dead, :sent_total, :done_total, :dead_total,
  :cancelled_total, :failed_total, :expired_total, :claimed_total, :oldest_ready_at, :wait_p50_ms,
  :wait_p95_ms, :work_p50_ms, :work_p95_ms, :at, :is_for_lake)
    ON CONFLICT (queue_no, minute_at) DO UPDATE
   SET is_for_lake = 1
 WHERE minute_counter.is_for_lake < excluded.is_for_lake;

-- name: first_at
-- The first sample of a queue.
SELECT min(minute_at)
  FROM minute_counter
 WHERE queue_no = :queue_no;

-- name: before
-- The last sample up to an instant.
SELECT queue_no, minute_at, waiting, ready, leased, dead, sent_total, done_total, dead_total,
       cancelled_total, failed_total, expired_total, claimed_total, oldest_ready_at, wait_p50_ms,
       wait_p95_ms, work_p50_ms, work_p95_ms
  FROM minute_counter
 WHERE queue_no = :queue_no
   AND minute_at <= :at
 ORDER BY minute_at DESC
 LIMIT 1;

-- name: steps
-- For each step of a graph: the last sample, the maximum of values that rise and fall, and the mean
-- of values that are means.  A sample at the end of a step belongs to it.
SELECT g.step_no, g.most_ready, s.queue_no, s.minute_at, s.waiting, s.ready, s.leased, s.dead,
       s.sent_total, s.done_total, s.dead_total, s.cancelled_total, s.failed_total,
       s.expired_total, s.claimed_total, s.oldest_ready_at, g.wait_p50_ms, g.wait_p95_ms,
       g.work_p50_ms, g.work_p95_ms
  FROM (
         SELECT m.step_no, max(m.minute_at) AS last_at, max(m.ready) AS most_ready,
                CAST(avg(m.wait_p50_ms) AS BIGINT) AS wait_p50_ms,
                max(m.wait_p95_ms) AS wait_p95_ms,
                CAST(avg(m.work_p50_ms) AS BIGINT) AS work_p50_ms,
                max(m.work_p95_ms) AS work_p95_ms
           FROM (
                  SELECT (minute_at - 1) / CAST(:step_ms AS BIGINT) AS step_no, minute_at, ready,
                         wait_p50_ms, wait_p95_ms, work_p50_ms, work_p95_ms
                    FROM minute_counter
                   WHERE queue_no = :queue_no
                     AND minute_at > :from_at
                     AND minute_at <= :to_at
                ) AS m
          GROUP BY m.step_no
       ) AS g
  JOIN minute_counter AS s
    ON s.queue_no = :queue_no
   AND s.minute_at = g.last_at
 ORDER BY g.step_no;

-- name: oldest
-- Since when the first message of each queue has been claimable: one index lookup per queue.
SELECT q.queue_no,
       (
         SELECT m.due_at
           FROM message AS m
          WHERE m.queue_no = q.queue_no
            AND m.state = 'ready'
            AND m.is_blocked = 0
          ORDER BY m.priority, m.turn, m.order_no
          LIMIT 1
       )
  FROM queue AS q
 WHERE q.queue_no IN {list:queue_nos};

-- name: times
-- Waiting and working times of the latest messages of a queue that were done in a period.
-- A lease that began before the store's time was set back has no duration.
SELECT first_leased_at - sent_at, finished_at - leased_at
  FROM history_{day}
 WHERE queue_no = :queue_no
   AND finished_at >= :from_at
   AND finished_at < :to_at
   AND outcome = 'done'
   AND first_leased_at IS NOT NULL
   AND leased_at <= finished_at
 ORDER BY finished_at DESC
 LIMIT :limit;

-- name: thin
-- Delete all but the last sample of each queue in a period, except those not yet in the lake.
DELETE FROM minute_counter
 WHERE minute_at > :from_at
   AND minute_at <= :to_at
   AND (is_for_lake = 0 OR sample_no <= :upto_no)
   AND EXISTS (
         SELECT 1
           FROM minute_counter AS l
          WHERE l.queue_no = minute_counter.queue_no
            AND l.minute_at > minute_counter.minute_at
            AND l.minute_at <= :to_at
       );

-- name: forget
-- Delete samples that are too old, except those not yet in the lake.
DELETE FROM minute_counter
 WHERE minute_at < :before_at
   AND (is_for_lake = 0 OR sample_no <= :upto_no);
