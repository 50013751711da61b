-- name: shares
-- As in common/, with MariaDB's JSON.
SELECT s.queue_no, s.priority, s.group_key, s.finish_no
  FROM {table:shares:bigint,bigint,text} AS g
 STRAIGHT_JOIN fair_share AS s FORCE INDEX (PRIMARY)
    ON s.queue_no = g.c0
   AND s.priority = g.c1
   AND s.group_key = g.c2;

-- name: keep_passed
-- As in common/, with MariaDB's upsert.
INSERT INTO fair_line (queue_no, priority, passed_no)
VALUES (:queue_no, :priority, :passed_no)
    ON DUPLICATE KEY UPDATE passed_no = greatest(fair_line.passed_no, VALUES(passed_no));

-- name: pass_all
-- As in common/, with MariaDB's upsert.
INSERT INTO fair_line (queue_no, priority, passed_no)
SELECT queue_no, priority, max(finish_no)
  FROM fair_share
 WHERE queue_no = :queue_no
 GROUP BY queue_no, priority
    ON DUPLICATE KEY UPDATE passed_no = greatest(fair_line.passed_no, VALUES(passed_no));

-- name: forget
-- As in common/, but skips rows that are locked, so that it never waits.
SELECT s.queue_no, s.priority, s.group_key
  FROM fair_line AS n
 STRAIGHT_JOIN fair_share AS s FORCE INDEX (fair_share_by_finish)
    ON s.queue_no = n.queue_no
   AND s.priority = n.priority
   AND s.finish_no <= n.passed_no
 LIMIT :limit
   FOR UPDATE SKIP LOCKED;
DELETE FROM fair_share
 WHERE (queue_no, priority, group_key) IN ({found:queue_no,priority,group_key});

-- name: assign_all
-- As in common/, with MariaDB's JSON and division of integers.
UPDATE message
  JOIN (SELECT m.message_no,
               row_number() OVER (PARTITION BY m.priority, coalesce(m.group_key, '')
                                      ORDER BY m.order_no) AS place,
               coalesce(CAST(JSON_VALUE(:weights,
                               CONCAT('$.' COLLATE utf8mb4_bin, JSON_QUOTE(coalesce(m.group_key, '')))) AS signed), 1)
                 AS weight
          FROM message AS m
         WHERE m.queue_no = :queue_no
           AND (m.state IN ('ready', 'leased')
                OR (m.state = 'waiting'
                    AND (m.first_leased_at IS NOT NULL OR m.gate = 1 OR :is_ordered = 1)))) AS l
    ON message.message_no = l.message_no
   SET turn = 1 + (l.place - 1) * (:step DIV l.weight);

-- name: note_shares
-- As in common/, with MariaDB's JSON and division of integers.
INSERT INTO fair_share (queue_no, priority, group_key, finish_no)
SELECT m.queue_no, m.priority, coalesce(m.group_key, ''),
       max(m.turn) + :step DIV coalesce(
         CAST(JSON_VALUE(:weights,
                         CONCAT('$.' COLLATE utf8mb4_bin, JSON_QUOTE(coalesce(m.group_key, '')))) AS signed), 1)
  FROM message AS m
 WHERE m.queue_no = :queue_no
   AND m.turn > 0
   AND m.state IN ('waiting', 'ready', 'leased')
 GROUP BY m.queue_no, m.priority, coalesce(m.group_key, '');
