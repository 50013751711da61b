-- name: find
-- As in common/, with MariaDB's JSON.
SELECT p.queue_no, p.group_key, p.credit, p.paced_at
  FROM {table:groups:bigint,text} AS g
 STRAIGHT_JOIN pace AS p FORCE INDEX (PRIMARY)
    ON p.queue_no = g.c0
   AND p.group_key = g.c1;

-- name: forget
-- As in common/, but skips rows that are locked, so that it never waits.
SELECT queue_no, group_key
  FROM pace FORCE INDEX (pace_by_end)
 WHERE full_at <= :now
 LIMIT :limit
   FOR UPDATE SKIP LOCKED;
DELETE FROM pace
 WHERE (queue_no, group_key) IN ({found:queue_no,group_key});
