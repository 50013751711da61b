-- name: take_numbers
-- The next numbers for messages and places in line; one sequence serves both.  Runs of numbers:
-- where each begins, and how many they are.
UPDATE sequence
   SET taken_no = taken_no + :count
 WHERE name = 'message'
RETURNING taken_no - :count + 1, :count;

-- name: add
-- New messages.  What stands at its default is left out: fewer values to bind.
INSERT INTO message (
  id, queue_no, due_at, sent_at, message_no, state, order_no, priority, expires_at, max_attempts,
  is_blocked, group_key, kind, entity_id, tag1, tag2, dedup_key, size, body_day)
VALUES (
  :id, :queue_no, :due_at, :sent_at, :message_no, :state, :order_no, :priority, :expires_at,
  :max_attempts, :is_blocked, :group_key, :kind, :entity_id, :tag1, :tag2, :dedup_key, :size,
  :body_day);

-- name: add_jobs
-- The same for those that say more.
INSERT INTO message (
  id, queue_no, due_at, sent_at, message_no, state, order_no, priority, expires_at, max_attempts,
  is_blocked, group_key, kind, entity_id, tag1, tag2, dedup_key, size, body_day, timeout_ms,
  retries_timeouts, dedup_until, route)
VALUES (
  :id, :queue_no, :due_at, :sent_at, :message_no, :state, :order_no, :priority, :expires_at,
  :max_attempts, :is_blocked, :group_key, :kind, :entity_id, :tag1, :tag2, :dedup_key, :size,
  :body_day, :timeout_ms, :retries_timeouts, :dedup_until, :route);

-- name: add_placed
-- The same for those that came into a queue with limits or fair share.
INSERT INTO message (
  id, queue_no, due_at, sent_at, message_no, state, order_no, priority, expires_at, max_attempts,
  is_blocked, group_key, kind, entity_id, tag1, tag2, dedup_key, size, body_day, timeout_ms,
  retries_timeouts, dedup_until, route, turn, gate)
VALUES (
  :id, :queue_no, :due_at, :sent_at, :message_no, :state, :order_no, :priority, :expires_at,
  :max_attempts, :is_blocked, :group_key, :kind, :entity_id, :tag1, :tag2, :dedup_key, :size,
  :body_day, :timeout_ms, :retries_timeouts, :dedup_until, :route, :turn, :gate);

-- name: add_bodies
-- What was sent, apart from the row that changes state.
INSERT INTO body_{day} (message_no, body, attributes, trace)
VALUES (:message_no, :body, :attributes, :trace);

-- name: live_groups
-- Which of these groups have an unfinished message; newcomers stand behind it.
SELECT g.value ->> 0, g.value ->> 1
  FROM json_each(:groups) AS g
 WHERE EXISTS (SELECT 1
                 FROM message AS m
                WHERE m.queue_no = g.value ->> 0
                  AND m.group_key = g.value ->> 1
                  AND m.state IN ('waiting', 'ready', 'leased'));

-- name: groups_of
-- The groups of messages that are about to leave them.
SELECT queue_no, group_key
  FROM message
 WHERE group_key IS NOT NULL
   AND message_no IN {list:message_nos};

-- name: lock_groups
-- Nothing to lock: SQLite has one writer.

-- name: try_lock_groups
-- Nor here.

-- name: skip_locked
-- Nor here: what stands for {lock} in steps over many messages.

-- name: fallen_due
-- Delayed messages whose time has come and leases that ran out, of one queue.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state IN ('waiting', 'leased')
   AND due_at <= :now
 ORDER BY due_at, order_no
 LIMIT :limit;

-- name: queues_with_due
-- Which queues have any, for the duty that tidies.  OFFSET 0 keeps PostgreSQL from looking at the
-- messages of all queues together.
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
-- When the next message of a queue falls due or the next lease runs out.
SELECT due_at
  FROM message
 WHERE queue_no = :queue_no
   AND state IN ('waiting', 'leased')
 ORDER BY due_at
 LIMIT 1;

-- name: expired
-- Messages in line that are too old to be of use.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state IN ('waiting', 'ready')
   AND expires_at IS NOT NULL
   AND expires_at <= :now
 ORDER BY expires_at
 LIMIT :limit;

-- name: queues_with_expired
-- Which queues have any.
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
-- Which messages, in which order: decided here.  What becomes of them: domain/message/lifecycle.py.  As many
-- as are wanted and as one answer holds; the first in any case.
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
-- The contents of claimed messages of one day.
SELECT message_no, body, attributes, trace
  FROM body_{day}
 WHERE message_no IN {list:message_nos};

-- name: complete
-- The lease number and its instant are the fence: a stale holder matches no row.
INSERT INTO history_{day} (
  id, message_no, queue_no, outcome, reason, kind, entity_id, tag1, tag2, group_key, priority,
  sent_at, due_at, first_leased_at, leased_at, finished_at, attempts, failures, lease_no, leased_by,
  last_error, size, body_day, route, crashes, held_key)
SELECT m.id, m.message_no, m.queue_no, 'done', NULL, m.kind, m.entity_id, m.tag1, m.tag2,
       m.group_key, m.priority, m.sent_at, m.due_at, m.first_leased_at, m.leased_at, :now,
       m.attempts, m.failures, m.lease_no, m.leased_by, m.last_error, m.size, m.body_day,
       m.route, m.crashes, CASE WHEN m.dedup_until = 'ended' THEN m.dedup_key END
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
          END;

-- name: remove_completed
-- What complete has noted leaves the hot table.
DELETE FROM message
 WHERE message_no IN {list:message_nos};

-- name: remove
-- Finished messages leave the hot table.
DELETE FROM message
 WHERE message_no IN {list:message_nos};

-- name: end
-- The endings of messages that stand in the table with their last state.
INSERT INTO history_{day} (
  id, message_no, queue_no, outcome, reason, kind, entity_id, tag1, tag2, group_key, priority,
  sent_at, due_at, first_leased_at, leased_at, finished_at, attempts, failures, lease_no, leased_by,
  last_error, size, body_day, route, crashes, held_key)
VALUES (
  :id, :message_no, :queue_no, :outcome, :reason, :kind, :entity_id, :tag1, :tag2, :group_key,
  :priority, :sent_at, :due_at, :first_leased_at, :leased_at, :finished_at, :attempts, :failures,
  :lease_no, :leased_by, :last_error, :size, :body_day, :route, :crashes, :held_key);

-- name: attempt
-- Leases that ended without finishing their messages.
INSERT INTO attempt_{day} (
  id, message_no, queue_no, lease_no, outcome, leased_at, ended_at, leased_by, error)
VALUES (
  :id, :message_no, :queue_no, :lease_no, :outcome, :leased_at, :ended_at, :leased_by, :error);

-- name: by_no
-- Messages to act upon.
SELECT {columns}
  FROM message
 WHERE message_no IN {list:message_nos};

-- name: numbered
-- Messages to look at.
SELECT {columns}
  FROM message
 WHERE message_no IN {list:message_nos};

-- name: unlocked_by_no
-- Messages seen before that nobody else is at work on.
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
-- What an act may change.
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
-- The first unfinished message of each of these groups may be claimed now.
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
-- Dead messages at rest in a queue, oldest first.  Without `any_home` only those whose queue, if
-- they died in another, is still there.
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
-- Messages in line that died elsewhere and were moved here; `any_home` as above.
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
-- As they would be claimed.
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
-- In the order in which they were sent.
SELECT {columns}
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'dead'
   AND (message_no, 0, 0)
       > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT))
 ORDER BY message_no
 LIMIT :limit;

-- name: oldest_ready
-- How long the next one to be claimed has been due.
SELECT due_at
  FROM message
 WHERE queue_no = :queue_no
   AND state = 'ready'
   AND is_blocked = 0
 ORDER BY priority, turn, order_no
 LIMIT 1;
