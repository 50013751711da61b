-- Durable steps of messages.

-- name: add
-- Record a step behind the others of its message; no row if it is recorded already.
INSERT INTO step (message_no, name, step_no, outcome, at, day)
SELECT CAST(:message_no AS bigint), CAST(:name AS text), coalesce(max(step_no), 0) + 1,
       CAST(:outcome AS text), CAST(:at AS bigint), CAST(:day AS integer)
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
