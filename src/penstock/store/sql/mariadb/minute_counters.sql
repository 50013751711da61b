-- name: add
-- As in common/, with MariaDB's upsert.
INSERT INTO minute_counter (
  queue_no, minute_at, waiting, ready, leased, dead, sent_total, done_total, dead_total,
  cancelled_total, failed_total, expired_total, claimed_total, oldest_ready_at, wait_p50_ms,
  wait_p95_ms, work_p50_ms, work_p95_ms, at, is_for_lake)
VALUES (
  :queue_no, :minute_at, :waiting, :ready, :leased, :dead, :sent_total, :done_total, :dead_total,
  :cancelled_total, :failed_total, :expired_total, :claimed_total, :oldest_ready_at, :wait_p50_ms,
  :wait_p95_ms, :work_p50_ms, :work_p95_ms, :at, :is_for_lake)
    ON DUPLICATE KEY UPDATE
       is_for_lake = greatest(minute_counter.is_for_lake, VALUES(is_for_lake));

-- name: steps
-- As in common/, with MariaDB's division of integers.
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
                  SELECT (minute_at - 1) DIV :step_ms AS step_no, minute_at, ready,
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
