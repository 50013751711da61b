-- name: marks
-- A number per queue that almost every change alters: it shows which queues to read again.
SELECT queue_no,
       sum(sent_total + claimed_total + done_total + dead_total + cancelled_total + failed_total
           + expired_total + 1009 * waiting + 10007 * ready + 100003 * leased + 1000003 * dead)
  FROM counter
 GROUP BY queue_no;

-- name: workers
-- The number of workers that are alive: a small table, and not on the hot path.
SELECT count(*)
  FROM worker
 WHERE state IN ('active', 'draining')
   AND alive_until > :now;

-- name: circuits
-- The number of circuits that are not closed, from an index of just those.
SELECT count(*)
  FROM circuit
 WHERE state <> 'closed';

-- name: suspects
-- Queues that may have a problem; domain/queue/problem.py decides which. The first claimable
-- message is one index lookup per queue, and MATERIALIZED keeps it at one.
WITH s AS MATERIALIZED (
  SELECT q.queue_no, q.held_by, q.is_paused, c.dead, c.live,
         c.live >= CAST({json:q.settings} ->> 'max_messages' AS BIGINT) AS is_full,
         CASE WHEN q.name IN (
                SELECT {json:l.settings} ->> 'dead_letter_queue'
                  FROM queue AS l
                 WHERE l.removed_at IS NULL
              )
              THEN 1 ELSE 0 END AS takes_letters,
         (
           SELECT m.due_at
             FROM message AS m
            WHERE m.queue_no = q.queue_no
              AND m.state = 'ready'
              AND m.is_blocked = 0
            ORDER BY m.priority, m.turn, m.order_no
            LIMIT 1
         ) AS oldest_at
    FROM queue AS q
    JOIN (
           SELECT queue_no, sum(dead) AS dead, sum(waiting + ready + leased) AS live
             FROM counter
            GROUP BY queue_no
           HAVING sum(waiting + ready + leased + dead) > 0
         ) AS c
      ON c.queue_no = q.queue_no
   WHERE q.removed_at IS NULL
)
SELECT s.queue_no, s.oldest_at, s.takes_letters
  FROM s
 WHERE s.dead > 0
    OR s.is_full
    OR (s.held_by IS NOT NULL AND s.live > 0)
    OR (s.oldest_at IS NOT NULL
        AND (s.is_paused = 1
             OR s.takes_letters = 1
             OR s.oldest_at <= :late_at))
 ORDER BY CASE WHEN s.is_full THEN 0 WHEN s.held_by IS NOT NULL THEN 1 ELSE 2 END,
          s.dead + s.live DESC, s.queue_no
 LIMIT :limit;

-- name: hanging
-- Routes with deliveries that have been in progress for too long. A delivery queue has at most one
-- leased message; the first condition on the state is that of the index.
SELECT m.route, count(*), min(m.leased_at)
  FROM queue AS q
  JOIN (
         SELECT queue_no
           FROM counter
          GROUP BY queue_no
         HAVING sum(leased) > 0
       ) AS c
    ON c.queue_no = q.queue_no
  JOIN message AS m
    ON m.queue_no = q.queue_no
 WHERE q.removed_at IS NULL
   AND {json:q.settings} -> 'labels' ->> 'penstock.push' = 'true'
   AND m.state IN ('waiting', 'leased')
   AND m.state = 'leased'
   AND m.leased_at <= :since
   AND m.route IS NOT NULL
 GROUP BY m.route
 ORDER BY count(*) DESC, m.route
 LIMIT :limit;

-- name: tables
-- Nothing to find: only PostgreSQL leaves dead rows in its tables.

-- name: notifications
-- Nothing to find: only PostgreSQL has a queue of notifications.

-- name: transactions
-- Nothing to find: SQLite's readers do not hold back deleted rows.
