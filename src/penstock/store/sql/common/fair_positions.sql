-- Fair share: the numbers behind fair positions. The rule is in domain/queue/fair_share.py.

-- name: passed
-- The position that claims have reached, per queue and priority.
SELECT queue_no, priority, passed_no
  FROM fair_line
 WHERE queue_no IN {list:queue_nos};

-- name: shares
-- The finish number of some groups.
SELECT s.queue_no, s.priority, s.group_key, s.finish_no
  FROM json_each(:shares) AS g
 CROSS JOIN fair_share AS s
 WHERE s.queue_no = g.value ->> 0
   AND s.priority = g.value ->> 1
   AND s.group_key = g.value ->> 2;

-- name: keep_passed
-- It never decreases: a message with an earlier position may be claimed again later.
INSERT INTO fair_line (queue_no, priority, passed_no)
VALUES (:queue_no, :priority, :passed_no)
    ON CONFLICT (queue_no, priority)
    DO UPDATE
   SET passed_no = excluded.passed_no
 WHERE fair_line.passed_no < excluded.passed_no;

-- name: keep_shares
-- New finish numbers of groups.
INSERT INTO fair_share (queue_no, priority, group_key, finish_no)
VALUES (:queue_no, :priority, :group_key, :finish_no)
    ON CONFLICT (queue_no, priority, group_key)
    DO UPDATE
   SET finish_no = excluded.finish_no;

-- name: is_drained
-- True if nothing is ready, but groups have finish numbers.
SELECT 1
 WHERE EXISTS (SELECT 1 FROM fair_share WHERE queue_no = :queue_no)
   AND NOT EXISTS (SELECT 1 FROM message WHERE queue_no = :queue_no AND state = 'ready');

-- name: pass_all
-- Move a queue's passed positions to the last finish number of any group.
INSERT INTO fair_line (queue_no, priority, passed_no)
SELECT queue_no, priority, max(finish_no)
  FROM fair_share
 WHERE queue_no = :queue_no
 GROUP BY queue_no, priority
    ON CONFLICT (queue_no, priority)
    DO UPDATE
   SET passed_no = excluded.passed_no
 WHERE fair_line.passed_no < excluded.passed_no;

-- name: forget
-- Delete finish numbers that claims have passed.
DELETE FROM fair_share
 WHERE (queue_no, priority, group_key) IN (
         SELECT s.queue_no, s.priority, s.group_key
           FROM fair_line AS n
           JOIN fair_share AS s
             ON s.queue_no = n.queue_no
            AND s.priority = n.priority
            AND s.finish_no <= n.passed_no
          LIMIT :limit
       );

-- name: forget_shares
-- Delete all of a queue.
DELETE FROM fair_share
 WHERE queue_no = :queue_no;

-- name: forget_passed
-- Delete all of a queue.
DELETE FROM fair_line
 WHERE queue_no = :queue_no;

-- name: clear
-- The queue stops being fair: only order numbers count.
UPDATE message
   SET turn = 0
 WHERE queue_no = :queue_no
   AND turn > 0;

-- name: assign_all
-- The queue is fair from now on: assign positions as if its messages arrived one by one in an empty
-- queue. A message that waits and was never claimed gets its position when it falls due.
UPDATE message
   SET turn = 1 + (l.place - 1) * (:step / l.weight)
  FROM (SELECT m.message_no,
               row_number() OVER (PARTITION BY m.priority, coalesce(m.group_key, '')
                                      ORDER BY m.order_no) AS place,
               coalesce((SELECT w.value FROM json_each(:weights) AS w
                          WHERE w.key = coalesce(m.group_key, '')), 1) AS weight
          FROM message AS m
         WHERE m.queue_no = :queue_no
           AND (m.state IN ('ready', 'leased')
                OR (m.state = 'waiting'
                    AND (m.first_leased_at IS NOT NULL OR m.gate = 1 OR :is_ordered = 1)))) AS l
 WHERE message.message_no = l.message_no;

-- name: note_shares
-- The finish numbers of groups after that.
INSERT INTO fair_share (queue_no, priority, group_key, finish_no)
SELECT m.queue_no, m.priority, coalesce(m.group_key, ''),
       max(m.turn) + :step / coalesce((SELECT w.value FROM json_each(:weights) AS w
                                        WHERE w.key = coalesce(m.group_key, '')), 1)
  FROM message AS m
 WHERE m.queue_no = :queue_no
   AND m.turn > 0
   AND m.state IN ('waiting', 'ready', 'leased')
 GROUP BY m.queue_no, m.priority, coalesce(m.group_key, '');
