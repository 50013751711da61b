-- name: add
-- A new task; returns no row if the source has an active one already.
INSERT INTO move_task (
  task_id, source_no, target_no, state, max_per_second, to_move, moved, before_no, credit,
  paced_at, started_at)
VALUES (
  :task_id, :source_no, :target_no, :state, :max_per_second, :to_move, :moved, :before_no, :credit,
  :credited_at, :started_at)
    ON CONFLICT DO NOTHING
RETURNING task_id;

-- name: find
-- Tasks with the names of their queues, which may have been removed.
SELECT t.task_id, t.source_no, t.target_no, t.state, t.max_per_second, t.to_move, t.moved,
       t.before_no, t.credit, t.paced_at, t.started_at, t.ended_at, t.reason, s.name, g.name
  FROM move_task AS t
  JOIN queue AS s
    ON s.queue_no = t.source_no
  LEFT JOIN queue AS g
    ON g.queue_no = t.target_no
 {conditions};

-- name: by_id
-- One task.
WHERE t.task_id = :task_id;

-- name: lock
-- One task, to be changed.
WHERE t.task_id = :task_id;

-- name: lock_active
-- One task, to be advanced by the first node that tries.
WHERE t.task_id = :task_id
  AND t.state IN ('running', 'cancelling');

-- name: of_source
-- The tasks of one source, newest first.
WHERE t.source_no = :source_no
ORDER BY t.before_no DESC
LIMIT :limit;

-- name: active
-- All tasks that have not ended: few, with an index of their own.
SELECT task_id
  FROM move_task
 WHERE state IN ('running', 'cancelling')
 ORDER BY before_no;

-- name: save
-- The columns that a step may change.
UPDATE move_task
   SET state = :state,
       moved = :moved,
       credit = :credit,
       paced_at = :credited_at,
       ended_at = :ended_at,
       reason = :reason
 WHERE task_id = :task_id;

-- name: keep_latest
-- Delete ended tasks of one source, except the latest.
DELETE FROM move_task
 WHERE source_no = :source_no
   AND state NOT IN ('running', 'cancelling')
   AND before_no < (SELECT min(k.before_no)
                      FROM (SELECT before_no
                              FROM move_task
                             WHERE source_no = :source_no
                               AND state NOT IN ('running', 'cancelling')
                             ORDER BY before_no DESC
                             LIMIT :kept) AS k);

-- name: forget
-- Delete tasks that ended long ago.
DELETE FROM move_task
 WHERE state NOT IN ('running', 'cancelling')
   AND ended_at < :before_at;

-- name: ordinary
-- Ready messages that did not die in another queue, in the order of claims; or blocked ones.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'ready'
   AND is_blocked = :is_blocked
   AND dead_from IS NULL
   AND order_no < :before_no
   AND (expires_at IS NULL OR expires_at > :now)
 ORDER BY priority, turn, order_no
 LIMIT :limit
 {lock};

-- name: homeless
-- Whether a message is left whose original queue was removed. (The row of a removed queue stays.)
SELECT 1
  FROM message
 WHERE queue_no = :queue_no
   AND dead_from IS NOT NULL
   AND state IN ('waiting', 'ready', 'dead')
   AND order_no < :before_no
   AND (SELECT home.removed_at
          FROM queue AS home
         WHERE home.queue_no = message.dead_from) IS NOT NULL
 LIMIT 1;
