-- name: take_numbers
-- The next numbers of messages and of places in queues; one sequence serves both. Returns runs of
-- numbers: the first number and the count.
UPDATE sequence
   SET taken_no = taken_no + :count
 WHERE name = 'message'
RETURNING taken_no - :count + 1, :count;

-- name: add
-- New messages. Columns with default values are left out, to bind fewer values.
INSERT INTO message (
  id, queue_no, due_at, sent_at, message_no, state, order_no, priority, expires_at, max_attempts,
  is_blocked, group_key, kind, entity_id, tag1, tag2, dedup_key, size, body_day)
VALUES (
  :id, :queue_no, :due_at, :sent_at, :message_no, :state, :order_no, :priority, :expires_at,
  :max_attempts, :is_blocked, :group_key, :kind, :entity_id, :tag1, :tag2, :dedup_key, :size,
  :body_day);

-- name: add_jobs
-- The same, with the columns of jobs.
INSERT INTO message (
  id, queue_no, due_at, sent_at, message_no, state, order_no, priority, expires_at, max_attempts,
  is_blocked, group_key, kind, entity_id, tag1, tag2, dedup_key, size, body_day, timeout_ms,
  retries_timeouts, dedup_until, route)
VALUES (
  :id, :queue_no, :due_at, :sent_at, :message_no, :state, :order_no, :priority, :expires_at,
  :max_attempts, :is_blocked, :group_key, :kind, :entity_id, :tag1, :tag2, :dedup_key, :size,
  :body_day, :timeout_ms, :retries_timeouts, :dedup_until, :route);

-- name: add_placed
-- The same, for queues with limits or fair share.
INSERT INTO message (
  id, queue_no, due_at, sent_at, message_no, state, order_no, priority, expires_at, max_attempts,
  is_blocked, group_key, kind, entity_id, tag1, tag2, dedup_key, size, body_day, timeout_ms,
  retries_timeouts, dedup_until, route, turn, gate)
VALUES (
  :id, :queue_no, :due_at, :sent_at, :message_no, :state, :order_no, :priority, :expires_at,
  :max_attempts, :is_blocked, :group_key, :kind, :entity_id, :tag1, :tag2, :dedup_key, :size,
  :body_day, :timeout_ms, :retries_timeouts, :dedup_until, :route, :turn, :gate);

-- name: add_bodies
-- The content of messages, stored separately from the row that changes state.
INSERT INTO body_{day} (message_no, body, attributes, trace)
VALUES (:message_no, :body, :attributes, :trace);

-- name: live_groups
-- Which of these groups have an unfinished message; new messages are placed behind it.
SELECT g.value ->> 0, g.value ->> 1
  FROM json_each(:groups) AS g
 WHERE EXISTS (SELECT 1
                 FROM message AS m
                WHERE m.queue_no = g.value ->> 0
                  AND m.group_key = g.value ->> 1
                  AND m.state IN ('waiting', 'ready', 'leased'));

-- name: groups_of
-- The groups of messages that may leave them.
SELECT queue_no, group_key
  FROM message
 WHERE group_key IS NOT NULL
   AND message_no IN {list:message_nos};

-- name: due_dates
-- When the leases of these messages expire.
SELECT message_no, due_at
  FROM message
 WHERE message_no IN {list:message_nos};

-- name: lock_groups
-- Nothing to lock: SQLite has one writer.

-- name: try_lock_groups
-- Nothing to lock: SQLite has one writer.

-- name: skip_locked
-- The {lock} clause of steps over many messages: empty, because SQLite has one writer.

-- name: fallen_due
-- Messages of one queue whose delay is over or whose lease has expired; none is before :due_from.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state IN ('waiting', 'leased')
   AND due_at >= :due_from
   AND due_at <= :now
 ORDER BY due_at, order_no
 LIMIT :limit;

-- name: queues_with_due
-- Queues with such messages, for the reaper. OFFSET 0 keeps PostgreSQL from reading the messages of
-- all queues together.
SELECT q.queue_no
  FROM queue AS q
 WHERE q.removed_at IS NULL
   AND EXISTS (SELECT 1
                 FROM message AS m
                WHERE m.queue_no = q.queue_no
                  AND m.state IN ('waiting', 'leased')
                  AND m.due_at <= :now
                LIMIT 1 OFFSET 0);

-- name: next_due
-- When the next message of a queue falls due or the next lease expires, from :due_from on.
SELECT due_at
  FROM message
 WHERE queue_no = :queue_no
   AND state IN ('waiting', 'leased')
   AND due_at >= :due_from
 ORDER BY due_at
 LIMIT 1;

-- name: expired
-- Unclaimed messages that are past their expires_at.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state IN ('waiting', 'ready')
   AND expires_at IS NOT NULL
   AND expires_at <= :now
 ORDER BY expires_at
 LIMIT :limit;

-- name: queues_with_expired
-- Queues with such messages.
SELECT q.queue_no
  FROM queue AS q
 WHERE q.removed_at IS NULL
   AND EXISTS (SELECT 1
                 FROM message AS m
                WHERE m.queue_no = q.queue_no
                  AND m.state IN ('waiting', 'ready')
                  AND m.expires_at IS NOT NULL
                  AND m.expires_at <= :now
                LIMIT 1 OFFSET 0);

-- name: claim
-- Decides which messages are claimed, and in which order; domain/message/lifecycle.py decides how
-- they change. As many as are wanted and fit into one answer, but at least one.
UPDATE message
   SET {leased}
 WHERE message_no IN (
         SELECT message_no
           FROM (SELECT message_no, size, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS total
                   FROM (SELECT message_no, size
                           FROM message
                          WHERE queue_no = :queue_no
                            AND state = 'ready'
                            AND is_blocked = 0
                            AND (expires_at IS NULL OR expires_at > :now)
                          ORDER BY priority, turn, order_no
                          LIMIT :limit) AS picked) AS sized
          WHERE total <= CAST(:max_bytes AS BIGINT)
             OR total = size
       )
RETURNING {columns};

-- name: bodies
-- The contents of claimed messages, per day.
SELECT message_no, body, attributes, trace
  FROM body_{day}
 WHERE message_no IN {list:message_nos};

-- name: complete
-- The lease number and its instant are the fence: a stale lease holder matches no row. {result} is
-- given_result, or no_result if no act of the batch has one.
INSERT INTO history_{day} (
  id, message_no, queue_no, outcome, reason, kind, entity_id, tag1, tag2, group_key, priority,
  sent_at, due_at, first_leased_at, leased_at, finished_at, attempts, failures, lease_no, leased_by,
  last_error, size, body_day, route, crashes, held_key, result, flow_no)
SELECT m.id, m.message_no, m.queue_no, 'done', NULL, m.kind, m.entity_id, m.tag1, m.tag2,
       m.group_key, m.priority, m.sent_at, m.due_at, m.first_leased_at, m.leased_at, :now,
       m.attempts, m.failures, m.lease_no, m.leased_by, m.last_error, m.size, m.body_day,
       m.route, m.crashes, CASE WHEN m.dedup_until = 'ended' THEN m.dedup_key END, {result},
       m.flow_no
  FROM json_each(:held) AS h
  JOIN message AS m
    ON m.message_no = h.value ->> 0
 WHERE m.state = 'leased'
   AND m.lease_no = h.value ->> 1
   AND m.leased_at = h.value ->> 2
RETURNING message_no, lease_no, leased_at, id, queue_no, group_key, held_key,
          CASE
            WHEN group_key IS NOT NULL
            THEN (SELECT m.gate FROM message AS m WHERE m.message_no = history_{day}.message_no)
          END, flow_no;

-- name: given_result
-- The result of a completion: the fourth member of its entry in :held.
h.value ->> 3

-- name: no_result
-- The result of completions that have none.
NULL

-- name: remove_completed
-- Remove what complete has recorded from the hot table.
DELETE FROM message
 WHERE message_no IN {list:message_nos};

-- name: remove
-- Remove finished messages from the hot table.
DELETE FROM message
 WHERE message_no IN {list:message_nos};

-- name: end
-- History rows of messages that have ended.
INSERT INTO history_{day} (
  id, message_no, queue_no, outcome, reason, kind, entity_id, tag1, tag2, group_key, priority,
  sent_at, due_at, first_leased_at, leased_at, finished_at, attempts, failures, lease_no, leased_by,
  last_error, size, body_day, route, crashes, held_key, result, flow_no)
VALUES (
  :id, :message_no, :queue_no, :outcome, :reason, :kind, :entity_id, :tag1, :tag2, :group_key,
  :priority, :sent_at, :due_at, :first_leased_at, :leased_at, :finished_at, :attempts, :failures,
  :lease_no, :leased_by, :last_error, :size, :body_day, :route, :crashes, :held_key, :result,
  :flow_no);

-- name: attempt
-- Leases that ended without finishing their messages.
INSERT INTO attempt_{day} (
  id, message_no, queue_no, lease_no, outcome, leased_at, ended_at, leased_by, error)
VALUES (
  :id, :message_no, :queue_no, :lease_no, :outcome, :leased_at, :ended_at, :leased_by, :error);

-- name: by_no
-- Messages, to act upon.
SELECT {columns}
  FROM message
 WHERE message_no IN {list:message_nos};

-- name: by_numbers
-- Messages, read only.
SELECT {columns}
  FROM message
 WHERE message_no IN {list:message_nos};

-- name: unlocked_by_no
-- Messages that were read before, without those that other transactions have locked.
SELECT {columns}
  FROM message
 WHERE message_no IN {list:message_nos};

-- name: by_id
-- One message.
SELECT {columns}
  FROM message
 WHERE id = :id;

-- name: by_id_to_change
-- One message, to act upon.
SELECT {columns}
  FROM message
 WHERE id = :id;

-- name: save
-- The columns that an act may change.
UPDATE message
   SET queue_no = :queue_no,
       due_at = :due_at,
       state = :state,
       order_no = :order_no,
       expires_at = :expires_at,
       attempts = :attempts,
       failures = :failures,
       is_blocked = :is_blocked,
       last_error = :last_error,
       dead_from = :dead_from,
       reason = :reason,
       started_at = :started_at,
       crashes = :crashes,
       dedup_until = :dedup_until,
       progress = :progress,
       turn = :turn,
       gate = :gate
 WHERE message_no = :message_no;

-- name: unblock
-- Make the first unfinished message of each of these groups claimable.
UPDATE message
   SET is_blocked = 0
 WHERE is_blocked = 1
   AND message_no IN (
         SELECT (SELECT m.message_no
                   FROM message AS m
                  WHERE m.queue_no = g.value ->> 0
                    AND m.group_key = g.value ->> 1
                    AND m.state IN ('waiting', 'ready', 'leased')
                  ORDER BY m.order_no
                  LIMIT 1)
           FROM json_each(:groups) AS g
       )
RETURNING queue_no, state;

-- name: any_of
-- Any messages of a queue, to empty it; one arm per index.
SELECT {columns}
  FROM message
 WHERE message_no IN (
         SELECT message_no FROM message WHERE queue_no = :queue_no AND state = 'ready'
          UNION ALL
         SELECT message_no
           FROM message
          WHERE queue_no = :queue_no
            AND state IN ('waiting', 'leased')
          UNION ALL
         SELECT message_no FROM message WHERE queue_no = :queue_no AND state = 'dead'
          LIMIT :limit
       )
 {lock};

-- name: buried
-- Dead messages of a queue, oldest first. Without `any_home`, those that died in another queue are
-- left out if that was removed.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'dead'
   AND order_no < :before_no
   AND (:any_home = 1
        OR (SELECT home.removed_at
              FROM queue AS home
             WHERE home.queue_no = message.dead_from) IS NULL)
 ORDER BY message_no
 LIMIT :limit
 {lock};

-- name: dead_letters
-- Waiting and ready messages that died in another queue and were moved here; `any_home` as above.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND dead_from IS NOT NULL
   AND state IN ('waiting', 'ready')
   AND order_no < :before_no
   AND (:any_home = 1
        OR (SELECT home.removed_at
              FROM queue AS home
             WHERE home.queue_no = message.dead_from) IS NULL)
 ORDER BY order_no
 LIMIT :limit
 {lock};

-- name: browse_ready
-- In the order of claims.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'ready'
   AND (is_blocked, priority, turn, order_no)
       > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT),
          CAST(:after4 AS BIGINT))
 ORDER BY is_blocked, priority, turn, order_no
 LIMIT :limit;

-- name: browse_waiting
-- By due date.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'waiting'
   AND (due_at, message_no, 0)
       > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT))
 ORDER BY due_at, message_no
 LIMIT :limit;

-- name: browse_leased
-- By the end of the lease.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'leased'
   AND (due_at, message_no, 0)
       > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT))
 ORDER BY due_at, message_no
 LIMIT :limit;

-- name: browse_dead
-- In the order of sends.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'dead'
   AND (message_no, 0, 0)
       > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT))
 ORDER BY message_no
 LIMIT :limit;

-- name: oldest_ready
-- Since when the next message to be claimed has been due.
SELECT due_at
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'ready'
   AND is_blocked = 0
 ORDER BY priority, turn, order_no
 LIMIT 1;
