-- name: lock
-- As in common/, but locked: a step in progress finishes first.
WHERE t.task_id = :task_id
  FOR UPDATE;

-- name: lock_active
-- As in common/, but locked: one of several nodes takes the step, and the others do not wait.
WHERE t.task_id = :task_id
  AND t.state IN ('running', 'cancelling')
  FOR UPDATE SKIP LOCKED;

-- name: ordinary
-- As in common/, with the index named.
SELECT {columns}
  FROM message FORCE INDEX (message_to_claim)
 WHERE queue_no = :queue_no
   AND state = 'ready'
   AND is_blocked = :is_blocked
   AND dead_from IS NULL
   AND order_no < :before_no
   AND (expires_at IS NULL OR expires_at > :now)
 ORDER BY priority, turn, order_no
 LIMIT :limit
 {lock};
