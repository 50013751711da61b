-- name: serialize_removals
-- Transactions that remove queues read the table before they lock it: without this lock, two of
-- them would wait for each other.
SELECT pg_advisory_xact_lock(1885697139, 2);

-- name: stop_writes
-- Every transaction that sends, or locks a group or a message, has read this table first and keeps
-- that lock until its commit. So from here on all sent messages are visible, no other transaction
-- holds a lock, and new transactions wait for us.
LOCK TABLE queue IN ACCESS EXCLUSIVE MODE;

-- name: lock_room
-- Two sends that count a queue's messages must not both find the last place free.
SELECT pg_advisory_xact_lock(1885697141, s.slot)
  FROM (SELECT CAST(q.no AS integer) AS slot
          FROM json_array_elements_text(CAST(:queue_nos AS json)) AS q (no)
         ORDER BY slot) AS s;

-- name: lock_queues
-- Rows of queues with limits or fair share: a message that enters or leaves changes which others
-- may be claimed.
SELECT pg_advisory_xact_lock(1885697143, s.slot)
  FROM (SELECT CAST(q.no AS integer) AS slot
          FROM json_array_elements_text(CAST(:queue_nos AS json)) AS q (no)
         ORDER BY slot) AS s;

-- name: try_lock_queues
-- The same without waiting: returns the rows that are locked now.
SELECT CAST(q.no AS bigint)
  FROM json_array_elements_text(CAST(:queue_nos AS json)) AS q (no)
 WHERE pg_try_advisory_xact_lock(1885697143, CAST(q.no AS integer));

-- name: lock
-- As in common/, but locked, so that concurrent changes do not overwrite each other.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue
 WHERE removed_at IS NULL
   AND name = :name
   FOR UPDATE;

-- name: lock_holds
-- Transactions that hold or release queues lock them in one order.
SELECT queue_no
  FROM queue
 WHERE queue_no IN {list:queue_nos}
 ORDER BY queue_no
   FOR UPDATE;

-- name: count_in_new_row
-- Add changes to the counters in a row that no transaction has used, which takes over the last row.
WITH old AS (
  DELETE FROM counter
   WHERE queue_no = :queue_no
     AND stripe IN (:last, :before)
  RETURNING *
)
INSERT INTO counter (
  queue_no, stripe, waiting, ready, leased, dead, sent_total, done_total, dead_total,
  cancelled_total, failed_total, expired_total, claimed_total)
SELECT CAST(:queue_no AS bigint), CAST(:stripe AS bigint),
       CAST(:waiting + coalesce(sum(waiting), 0) AS bigint),
       CAST(:ready + coalesce(sum(ready), 0) AS bigint),
       CAST(:leased + coalesce(sum(leased), 0) AS bigint),
       CAST(:dead + coalesce(sum(dead), 0) AS bigint),
       CAST(:sent_total + coalesce(sum(sent_total), 0) AS bigint),
       CAST(:done_total + coalesce(sum(done_total), 0) AS bigint),
       CAST(:dead_total + coalesce(sum(dead_total), 0) AS bigint),
       CAST(:cancelled_total + coalesce(sum(cancelled_total), 0) AS bigint),
       CAST(:failed_total + coalesce(sum(failed_total), 0) AS bigint),
       CAST(:expired_total + coalesce(sum(expired_total), 0) AS bigint),
       CAST(:claimed_total + coalesce(sum(claimed_total), 0) AS bigint)
  FROM old
    ON CONFLICT (queue_no, stripe)
    DO UPDATE
   SET waiting = counter.waiting + excluded.waiting,
       ready = counter.ready + excluded.ready,
       leased = counter.leased + excluded.leased,
       dead = counter.dead + excluded.dead,
       sent_total = counter.sent_total + excluded.sent_total,
       done_total = counter.done_total + excluded.done_total,
       dead_total = counter.dead_total + excluded.dead_total,
       cancelled_total = counter.cancelled_total + excluded.cancelled_total,
       failed_total = counter.failed_total + excluded.failed_total,
       expired_total = counter.expired_total + excluded.expired_total,
       claimed_total = counter.claimed_total + excluded.claimed_total;

-- name: count_in_merged_row
-- The same, with all rows of a connection's slot: its first one, and those that moved.
WITH old AS (
  DELETE FROM counter
   WHERE queue_no = :queue_no
     AND (stripe = :slot OR (stripe >= :first AND stripe % :slots = :slot))
  RETURNING *
)
INSERT INTO counter (
  queue_no, stripe, waiting, ready, leased, dead, sent_total, done_total, dead_total,
  cancelled_total, failed_total, expired_total, claimed_total)
SELECT CAST(:queue_no AS bigint), CAST(:stripe AS bigint),
       CAST(:waiting + coalesce(sum(waiting), 0) AS bigint),
       CAST(:ready + coalesce(sum(ready), 0) AS bigint),
       CAST(:leased + coalesce(sum(leased), 0) AS bigint),
       CAST(:dead + coalesce(sum(dead), 0) AS bigint),
       CAST(:sent_total + coalesce(sum(sent_total), 0) AS bigint),
       CAST(:done_total + coalesce(sum(done_total), 0) AS bigint),
       CAST(:dead_total + coalesce(sum(dead_total), 0) AS bigint),
       CAST(:cancelled_total + coalesce(sum(cancelled_total), 0) AS bigint),
       CAST(:failed_total + coalesce(sum(failed_total), 0) AS bigint),
       CAST(:expired_total + coalesce(sum(expired_total), 0) AS bigint),
       CAST(:claimed_total + coalesce(sum(claimed_total), 0) AS bigint)
  FROM old
    ON CONFLICT (queue_no, stripe)
    DO UPDATE
   SET waiting = counter.waiting + excluded.waiting,
       ready = counter.ready + excluded.ready,
       leased = counter.leased + excluded.leased,
       dead = counter.dead + excluded.dead,
       sent_total = counter.sent_total + excluded.sent_total,
       done_total = counter.done_total + excluded.done_total,
       dead_total = counter.dead_total + excluded.dead_total,
       cancelled_total = counter.cancelled_total + excluded.cancelled_total,
       failed_total = counter.failed_total + excluded.failed_total,
       expired_total = counter.expired_total + excluded.expired_total,
       claimed_total = counter.claimed_total + excluded.claimed_total;
