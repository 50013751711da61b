-- name: tables
-- Every table of the store, except those that stand for locks and wake-ups.
SELECT table_name
  FROM information_schema.tables
 WHERE table_schema = DATABASE()
   AND table_type = 'BASE TABLE'
   AND table_name NOT IN ('lock_slot', 'wakeup')
 ORDER BY table_name;

-- name: columns
-- The columns of a table, in their order, without generated ones.
SELECT column_name
  FROM information_schema.columns
 WHERE table_schema = DATABASE()
   AND table_name = :table_name
   AND generation_expression IS NULL
 ORDER BY ordinal_position;

-- name: lock
-- Keep nodes from using the store while it is filled: their transactions begin with this row.
SELECT slot
  FROM lock_slot
 WHERE purpose = 0
   AND slot = 0
   FOR UPDATE;

-- name: any_row
-- Whether the table has a row.
SELECT 1
  FROM "{table}"
 LIMIT 1;

-- name: add
-- Copy rows.
INSERT INTO {table} ({names})
VALUES ({params});

-- name: count
-- The number of rows that have arrived.
SELECT count(*)
  FROM "{table}";

-- name: take
-- Number new messages after all that were ever sent.
SELECT SETVAL(message_no, :taken_no, 1);

-- name: unbalanced
-- Queues whose counters do not agree with the table, or do not add up.
SELECT n.queue_no
  FROM (SELECT queue_no FROM counter UNION SELECT queue_no FROM message) AS n
  LEFT JOIN (SELECT queue_no, sum(waiting) AS waiting, sum(ready) AS ready, sum(leased) AS leased,
                    sum(dead) AS dead, sum(sent_total) AS sent,
                    sum(done_total + dead_total + cancelled_total) AS ended
               FROM counter
              GROUP BY queue_no) AS c
    ON c.queue_no = n.queue_no
  LEFT JOIN (SELECT queue_no, sum(state = 'waiting') AS waiting, sum(state = 'ready') AS ready,
                    sum(state = 'leased') AS leased, sum(state = 'dead') AS dead
               FROM message
              GROUP BY queue_no) AS m
    ON m.queue_no = n.queue_no
 WHERE coalesce(c.waiting, 0) <> coalesce(m.waiting, 0)
    OR coalesce(c.ready, 0) <> coalesce(m.ready, 0)
    OR coalesce(c.leased, 0) <> coalesce(m.leased, 0)
    OR coalesce(c.dead, 0) <> coalesce(m.dead, 0)
    OR coalesce(c.sent, 0) <> coalesce(c.waiting + c.ready + c.leased + c.ended, 0)
 ORDER BY 1;
