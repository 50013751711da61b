-- name: add
-- One that has just registered.
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
-- One of them.
WHERE worker_id = :worker_id;

-- name: to_change
-- One of them, to be changed.
WHERE worker_id = :worker_id;

-- name: to_lose
-- One of them, to be called lost by whoever comes first.
WHERE worker_id = :worker_id
  AND state IN ('active', 'draining')
  AND alive_until <= :now;

-- name: present
-- Those that are there, by their ids, which grow with time.
WHERE state IN ('active', 'draining')
  AND worker_id > :after
ORDER BY worker_id
LIMIT :limit;

-- name: everybody
-- Those that have gone, too.
WHERE worker_id > :after
ORDER BY worker_id
LIMIT :limit;

-- name: overdue
-- Those that were not heard of in time.
WHERE state IN ('active', 'draining')
  AND alive_until <= :now
ORDER BY alive_until
LIMIT :limit;

-- name: lost_since
-- Those that were lost a moment ago, page by page.
WHERE state = 'lost'
  AND ended_at >= :after_at
  AND (ended_at, worker_id) > (CAST(:after_at AS BIGINT), :after_id)
ORDER BY ended_at, worker_id
LIMIT :limit;

-- name: save
-- What may change.
UPDATE worker
   SET state = :state,
       beat_at = :beat_at,
       alive_until = :alive_until,
       ended_at = :ended_at
 WHERE worker_id = :worker_id;

-- name: forget
-- Those that have gone long ago.
DELETE FROM worker
 WHERE state IN ('left', 'lost')
   AND ended_at < :before_at;

-- name: queues_with_leases
-- Where anything is leased at all.
SELECT queue_no
  FROM counter
 GROUP BY queue_no
HAVING sum(leased) > 0;

-- name: held
-- What workers hold in some queues.  Claims pay for no index by worker, so this looks at all that is
-- leased there, and at what waits for its due date between.
SELECT {columns}
  FROM message
 WHERE queue_no IN {list:queue_nos}
   AND state IN ('waiting', 'leased')
   AND state = 'leased'
   AND leased_by IN (SELECT value FROM json_each(:worker_ids))
 ORDER BY queue_no, due_at, message_no
 LIMIT :limit;
