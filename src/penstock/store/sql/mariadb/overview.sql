-- name: suspects
-- As in common/, with MariaDB's JSON.
SELECT s.queue_no, s.oldest_at, s.takes_letters
  FROM (SELECT q.queue_no, q.held_by, q.is_paused, c.dead, c.live,
               c.live >= CAST(JSON_VALUE(q.settings, '$.max_messages') AS signed) AS is_full,
               q.name IN (
                 SELECT JSON_VALUE(l.settings, '$.dead_letter_queue')
                   FROM queue AS l
                  WHERE l.removed_at IS NULL
                    AND JSON_VALUE(l.settings, '$.dead_letter_queue') IS NOT NULL
               ) AS takes_letters,
               (
                 SELECT m.due_at
                   FROM message AS m FORCE INDEX (message_to_claim)
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
         WHERE q.removed_at IS NULL) AS s
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
-- As in common/, with MariaDB's JSON.
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
   AND JSON_VALUE(q.settings, '$.labels."penstock.push"') = 'true'
   AND m.state = 'leased'
   AND m.leased_at <= :since
   AND m.route IS NOT NULL
 GROUP BY m.route
 ORDER BY count(*) DESC, m.route
 LIMIT :limit;
