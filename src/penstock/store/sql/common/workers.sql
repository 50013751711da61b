-- name: add
-- A newly registered worker.
INSERT INTO worker (
  worker_id, state, name, host, pid, queues, kinds, slots, labels, registered_at, beat_at,
  alive_until, ended_at)
VALUES (
  :worker_id, :state, :name, :host, :pid, :queues, :kinds, :slots, :labels, :registered_at,
  :beat_at, :alive_until, :ended_at);

-- name: find
-- Workers, by one of the conditions below.
SELECT worker_id, state, name, host, pid, queues, kinds, slots, labels, registered_at, beat_at,
       alive_until, ended_at
  FROM worker
 {conditions};

-- name: by_id
-- One worker.
WHERE worker_id = :worker_id;

-- name: lock
-- One worker, to be changed.
WHERE worker_id = :worker_id;

-- name: lock_overdue
-- One worker, to be marked as lost by the first node that tries.
WHERE worker_id = :worker_id
  AND state IN ('active', 'draining')
  AND alive_until <= :now;

-- name: present
-- Workers that have not left and are not lost, by id; ids grow with time.
WHERE state IN ('active', 'draining')
  AND worker_id > :after
ORDER BY worker_id
LIMIT :limit;

-- name: all
-- All workers, gone ones included.
WHERE worker_id > :after
ORDER BY worker_id
LIMIT :limit;

-- name: overdue
-- Workers whose beat is overdue.
WHERE state IN ('active', 'draining')
  AND alive_until <= :now
ORDER BY alive_until
LIMIT :limit;

-- name: lost_since
-- Recently lost workers, page by page.
WHERE state = 'lost'
  AND ended_at >= :after_at
  AND (ended_at, worker_id) > (CAST(:after_at AS BIGINT), :after_id)
ORDER BY ended_at, worker_id
LIMIT :limit;

-- name: save
-- The columns that may change.
UPDATE worker
   SET state = :state,
       beat_at = :beat_at,
       alive_until = :alive_until,
       ended_at = :ended_at
 WHERE worker_id = :worker_id;

-- name: forget
-- Delete workers that have been gone for long.
DELETE FROM worker
 WHERE state IN ('left', 'lost')
   AND ended_at < :before_at;

-- name: queues_with_leases
-- Queues with leased messages.
SELECT queue_no
  FROM counter
 GROUP BY queue_no
HAVING sum(leased) > 0;

-- name: leases
-- Messages that workers have leased in some queues. An index by worker would slow claims down, so
-- this reads all leased messages of these queues, and the waiting ones between them.
SELECT {columns}
  FROM message
 WHERE queue_no IN {list:queue_nos}
   AND state IN ('waiting', 'leased')
   AND state = 'leased'
   AND leased_by IN (SELECT value FROM json_each(:worker_ids))
 ORDER BY queue_no, due_at, message_no
 LIMIT :limit;
