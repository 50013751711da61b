-- name: admitted
-- As in common/, with MariaDB's JSON.
SELECT g.c0, g.c1, m.state, count(*)
  FROM {table:groups:bigint,text} AS g
 STRAIGHT_JOIN message AS m FORCE INDEX (message_gated)
    ON m.queue_no = g.c0
   AND m.group_key = g.c1
   AND m.gate = 1
 GROUP BY 1, 2, 3;
