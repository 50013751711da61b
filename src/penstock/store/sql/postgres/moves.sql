-- name: to_change
-- As in common/, but locked: whoever advances the task just now finishes the step first.
WHERE t.task_id = :task_id
  FOR UPDATE OF t;

-- name: to_advance
-- As in common/, but locked: of several nodes one takes the step, and the others do not wait.
WHERE t.task_id = :task_id
  AND t.state IN ('running', 'cancelling')
  FOR UPDATE OF t SKIP LOCKED;

-- name: ordinary
-- As in common/, plus locks of rows and groups: whoever else is at work on a message or a group is
-- left alone, and nobody waits.
WITH picked AS MATERIALIZED (
  SELECT {columns}
    FROM message
   WHERE queue_no = :queue_no
     AND state = 'ready'
     AND is_blocked = 0
     AND dead_from IS NULL
     AND order_no < :before_no
     AND (expires_at IS NULL OR expires_at > :now)
   ORDER BY priority, order_no
   LIMIT :limit
     FOR UPDATE SKIP LOCKED
)
SELECT {columns}
  FROM picked
 WHERE group_key IS NULL
    OR pg_try_advisory_xact_lock(1885697140, hashtext(concat(queue_no, '/', group_key)) & 2047)
 ORDER BY priority, order_no;
