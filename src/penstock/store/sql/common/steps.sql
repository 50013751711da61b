-- Durable steps of messages.

-- name: add
-- Record a step behind the others of its message; no row if it is recorded already.
INSERT INTO step (message_no, name, step_no, outcome, at, day, kind, lease_no, took_ms)
SELECT CAST(:message_no AS bigint), CAST(:name AS text), coalesce(max(step_no), 0) + 1,
       CAST(:outcome AS text), CAST(:at AS bigint), CAST(:day AS integer), CAST(:kind AS text),
       CAST(:lease_no AS bigint), CAST(:took_ms AS bigint)
  FROM step
 WHERE message_no = :message_no
    ON CONFLICT (message_no, name) DO NOTHING
RETURNING step_no;

-- name: find
-- One step of a message.
SELECT step_no, name, outcome, at
  FROM step
 WHERE message_no = :message_no
   AND name = :name;

-- name: sizes
-- The sizes of a page of steps, to choose how many fit into an answer.
SELECT length(outcome)
  FROM step
 WHERE message_no = :message_no
   AND step_no > :after_no
 ORDER BY step_no
 LIMIT :limit;

-- name: page
-- Steps of a message in the order in which they were recorded.
SELECT step_no, name, outcome, at
  FROM step
 WHERE message_no = :message_no
   AND step_no > :after_no
 ORDER BY step_no
 LIMIT :limit;

-- name: forget
-- Steps recorded up to this day, of messages that are neither live nor dead.
DELETE FROM step
 WHERE day <= :day
   AND NOT EXISTS (SELECT 1 FROM message AS m WHERE m.message_no = step.message_no);

-- name: times
-- Where the time of messages went, in the order in which the steps were recorded.
SELECT message_no, name, kind, at, lease_no, took_ms
  FROM step
 WHERE message_no IN {list:message_nos}
 ORDER BY message_no, step_no;

-- name: waits_begun
-- Waits that have not ended, of messages that were snoozed for them.
SELECT message_no, step, name, at, until_at, lease_no
  FROM signal_waiter
 WHERE message_no IN {list:message_nos}
   AND lease_no IS NOT NULL;

-- name: sizes_of
-- The sizes of all steps of messages.
SELECT message_no, sum(octet_length(outcome))
  FROM step
 WHERE message_no IN {list:message_nos}
 GROUP BY message_no;

-- name: of_messages
-- The steps of messages with their outcomes, in the order in which they were recorded.
SELECT message_no, name, kind, outcome, at, lease_no, took_ms
  FROM step
 WHERE message_no IN {list:message_nos}
 ORDER BY message_no, step_no;

-- name: restore
-- A step of a message that was restored from the lake.
INSERT INTO step (message_no, name, step_no, outcome, at, day, kind, lease_no, took_ms)
SELECT m.message_no, CAST(:name AS text), CAST(:step_no AS integer), CAST(:outcome AS text),
       CAST(:at AS bigint), CAST(:day AS integer), CAST(:kind AS text), CAST(:lease_no AS bigint),
       CAST(:took_ms AS bigint)
  FROM message AS m
 WHERE m.id = :id;

-- name: restore_wait
-- A wait of a message that was restored from the lake.
INSERT INTO signal_waiter (name, message_no, step, at, until_at, lease_no)
SELECT CAST(:signal AS text), m.message_no, CAST(:name AS text), CAST(:at AS bigint),
       CAST(:until_at AS bigint), CAST(:lease_no AS bigint)
  FROM message AS m
 WHERE m.id = :id;
