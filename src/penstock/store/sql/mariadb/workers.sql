-- name: lock
-- As in common/, but locked: a beat and a loss do not overwrite each other.
WHERE worker_id = :worker_id
  FOR UPDATE;

-- name: lock_overdue
-- As in common/, but locked: only one of several nodes does it, and the others do not wait.
WHERE worker_id = :worker_id
  AND state IN ('active', 'draining')
  AND alive_until <= :now
  FOR UPDATE SKIP LOCKED;
