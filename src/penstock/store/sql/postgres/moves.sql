-- name: lock
-- As in common/, but locked: a step in progress finishes first.
WHERE t.task_id = :task_id
  FOR UPDATE OF t;

-- name: lock_active
-- As in common/, but locked: one of several nodes takes the step, and the others do not wait.
WHERE t.task_id = :task_id
  AND t.state IN ('running', 'cancelling')
  FOR UPDATE OF t SKIP LOCKED;
