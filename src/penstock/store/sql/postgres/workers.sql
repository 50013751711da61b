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

-- name: leases
-- As in common/, with PostgreSQL's JSON.
SELECT {columns}
  FROM message
 WHERE queue_no IN {list:queue_nos}
   AND state IN ('waiting', 'leased')
   AND state = 'leased'
   AND leased_by IN (SELECT json_array_elements_text(CAST(:worker_ids AS json)))
 ORDER BY queue_no, due_at, message_no
 LIMIT :limit;
