-- Signals, and the messages that wait for them.

-- name: lock
-- Nothing to lock: SQLite has one writer.

-- name: find
-- A signal that is kept.
SELECT name, body, at, until_at
  FROM signal
 WHERE name = :name
   AND until_at > :now;

-- name: keep
-- Keep a signal, in place of one that is over.
INSERT INTO signal (name, body, at, until_at)
VALUES (:name, :body, :at, :until_at)
    ON CONFLICT (name)
    DO UPDATE
   SET body = excluded.body,
       at = excluded.at,
       until_at = excluded.until_at;

-- name: forget
-- Delete signals that are over.
DELETE FROM signal
 WHERE name IN (
         SELECT name
           FROM signal
          WHERE until_at <= :now
          LIMIT :limit
       );

-- name: register
-- A message waits; a wait that is registered again keeps its timeout.
INSERT INTO signal_waiter (name, message_no, step, at, until_at)
VALUES (:name, :message_no, :step, :at, :until_at)
    ON CONFLICT (name, message_no)
    DO UPDATE
   SET step = excluded.step
RETURNING name, message_no, step, at, until_at, lease_no;

-- name: arm
-- The message is snoozed under this lease, unless its wait has ended meanwhile.
UPDATE signal_waiter
   SET lease_no = :lease_no
 WHERE name = :name
   AND message_no = :message_no;

-- name: waits_for
-- All that wait for a signal.
SELECT name, message_no, step, at, until_at, lease_no
  FROM signal_waiter
 WHERE name = :name
 ORDER BY message_no;

-- name: waits_of
-- What a message waits for.
SELECT name, message_no, step, at, until_at, lease_no
  FROM signal_waiter
 WHERE message_no = :message_no
 ORDER BY name;

-- name: end_wait
-- The wait of one message is over.
DELETE FROM signal_waiter
 WHERE name = :name
   AND message_no = :message_no;

-- name: end_waits
-- The signal has arrived.
DELETE FROM signal_waiter
 WHERE name = :name;

-- name: forget_waits
-- Waits of messages that have ended.
DELETE FROM signal_waiter
 WHERE NOT EXISTS (SELECT 1 FROM message AS m WHERE m.message_no = signal_waiter.message_no);
