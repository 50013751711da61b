-- Fair share: the numbers behind the turns.  The rule is in domain/queue/fair_share.py.

-- name: lines
-- How far the lines of some queues are.
SELECT queue_no, priority, passed_no
  FROM fair_line
 WHERE queue_no IN {list:queue_nos};

-- name: shares
-- Where some groups have left off.
SELECT s.queue_no, s.priority, s.group_key, s.finish_no
  FROM json_each(:shares) AS g
 CROSS JOIN fair_share AS s
 WHERE s.queue_no = g.value ->> 0
   AND s.priority = g.value ->> 1
   AND s.group_key = g.value ->> 2;

-- name: save_windows
-- Lines never go back: an earlier turn may come again later.
INSERT INTO fair_line (queue_no, priority, passed_no)
VALUES (:queue_no, :priority, :passed_no)
    ON CONFLICT (queue_no, priority)
    DO UPDATE
   SET passed_no = excluded.passed_no
 WHERE fair_line.passed_no < excluded.passed_no;

-- name: keep_shares
-- Where groups have left off now.
INSERT INTO fair_share (queue_no, priority, group_key, finish_no)
VALUES (:queue_no, :priority, :group_key, :finish_no)
    ON CONFLICT (queue_no, priority, group_key)
    DO UPDATE
   SET finish_no = excluded.finish_no;

-- name: is_drained
-- Nobody stands in line, and somebody has left off somewhere.
SELECT 1
 WHERE EXISTS (SELECT 1 FROM fair_share WHERE queue_no = :queue_no)
   AND NOT EXISTS (SELECT 1 FROM message WHERE queue_no = :queue_no AND state = 'ready');

-- name: pass_all
-- All lines of a queue go on to where their last group has left off.
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
-- Groups that have left off where the line has passed by.
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
-- All of a queue.
DELETE FROM fair_share
 WHERE queue_no = :queue_no;

-- name: forget_lines
-- All of a queue.
DELETE FROM fair_line
 WHERE queue_no = :queue_no;

-- name: leave_off
-- The queue is not fair any more: only numbers count.
UPDATE message
   SET turn = 0
 WHERE queue_no = :queue_no
   AND turn > 0;

-- name: line_up
-- The queue is fair from now on: turns for all that have a place in line, as if they came anew, one
-- by one, into an empty one.  Who waits and was never claimed gets its turn when it falls due.
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
-- Where groups have left off after that.
INSERT INTO fair_share (queue_no, priority, group_key, finish_no)
SELECT m.queue_no, m.priority, coalesce(m.group_key, ''),
       max(m.turn) + :step / coalesce((SELECT w.value FROM json_each(:weights) AS w
                                        WHERE w.key = coalesce(m.group_key, '')), 1)
  FROM message AS m
 WHERE m.queue_no = :queue_no
   AND m.turn > 0
   AND m.state IN ('waiting', 'ready', 'leased')
 GROUP BY m.queue_no, m.priority, coalesce(m.group_key, '');
