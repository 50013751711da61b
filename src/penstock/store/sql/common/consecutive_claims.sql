-- Claims that take consecutive messages of one group.

-- name: heads
-- Messages that can be claimed now, most urgent first: each may be the first of a run.
SELECT message_no, group_key, order_no, size
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'ready'
   AND is_blocked = 0
   AND (expires_at IS NULL OR expires_at > :now)
 ORDER BY priority, turn, order_no
 LIMIT :limit;

-- name: walk
-- Walk from each head through its group while the next message is ready, group after group, until
-- there are enough. ORDER BY makes it stay in a group; each step is one index lookup.
WITH RECURSIVE walk (place, message_no, group_key, order_no, step, size) AS (
  SELECT key, value ->> 0, value ->> 1, value ->> 2, 0, value ->> 3
    FROM json_each(:heads)
   UNION ALL
  SELECT w.place, m.message_no, w.group_key, m.order_no, w.step + 1, m.size
    FROM walk AS w
    JOIN message AS m
      ON m.message_no = (SELECT f.message_no
                           FROM message AS f
                          WHERE f.queue_no = :queue_no
                            AND f.group_key = w.group_key
                            AND f.state IN ('waiting', 'ready', 'leased')
                            AND f.order_no > w.order_no
                          ORDER BY f.order_no
                          LIMIT 1)
   WHERE m.state = 'ready'
     AND (m.expires_at IS NULL OR m.expires_at > :now)
   ORDER BY 1, 5
   LIMIT :limit
)
SELECT place, message_no, 1, size
  FROM walk
 ORDER BY place, step;
