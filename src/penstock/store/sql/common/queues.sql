-- name: add
-- A new queue; its number is never reused.
INSERT INTO queue (name, settings, created_at, changed_at)
VALUES (:name, :settings, :now, :now)
    ON CONFLICT DO NOTHING
RETURNING queue_no, name, settings, is_paused, version, created_at, changed_at, held_by;

-- name: change
-- New settings, or pause and resume.
UPDATE queue
   SET settings = coalesce(:settings, settings),
       is_paused = coalesce(:is_paused, is_paused),
       changed_at = :now,
       version = version + 1
 WHERE queue_no = :queue_no
   AND removed_at IS NULL
RETURNING queue_no, name, settings, is_paused, version, created_at, changed_at, held_by;

-- name: hold
-- Hold queues, whether an operator has paused them or not; if two circuits do, the later one is
-- stored.
UPDATE queue
   SET held_by = :held_by,
       version = version + 1
 WHERE removed_at IS NULL
   AND queue_no IN {list:queue_nos};

-- name: unhold
-- Release queues; returns those that were held.
UPDATE queue
   SET held_by = NULL,
       version = version + 1
 WHERE removed_at IS NULL
   AND held_by IS NOT NULL
   AND queue_no IN {list:queue_nos}
RETURNING queue_no;

-- name: remove
-- The row stays, so that history can name it; the name becomes free.
UPDATE queue
   SET removed_at = :now,
       version = version + 1
 WHERE queue_no = :queue_no
   AND removed_at IS NULL;

-- name: removed_at
-- When a queue of this name was last removed.
SELECT max(removed_at)
  FROM queue
 WHERE name = :name;

-- name: serialize_removals
-- Nothing to lock: SQLite has one writer.

-- name: stop_writes
-- Nothing to stop: SQLite has one writer.

-- name: lock_holds
-- Nothing to lock: SQLite has one writer.

-- name: lock_room
-- Nothing to lock: SQLite has one writer.

-- name: lock_queues
-- Nothing to lock: SQLite has one writer.

-- name: try_lock_queues
-- Nothing to lock: SQLite has one writer.

-- name: by_nos
-- Some queues, as they are in this transaction.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue
 WHERE removed_at IS NULL
   AND queue_no IN {list:queue_nos};

-- name: by_name
-- One queue.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue
 WHERE removed_at IS NULL
   AND name = :name;

-- name: lock
-- One queue, whose settings are about to be changed.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue
 WHERE removed_at IS NULL
   AND name = :name;

-- name: page
-- Queues by name.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue
 WHERE removed_at IS NULL
   AND name > :after
   AND substr(name, 1, length(CAST(:prefix AS TEXT))) = :prefix
   AND (CAST(:contains AS TEXT) = '' OR replace(lower(name), :contains, '') <> lower(name))
 ORDER BY name
 LIMIT :limit;

-- name: page_of_sources
-- Queues by name whose dead messages go to a given queue.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue
 WHERE removed_at IS NULL
   AND name > :after
   AND substr(name, 1, length(CAST(:prefix AS TEXT))) = :prefix
   AND (CAST(:contains AS TEXT) = '' OR replace(lower(name), :contains, '') <> lower(name))
   AND {json:settings} ->> 'dead_letter_queue' = :dead_letter_queue
 ORDER BY name
 LIMIT :limit;

-- name: number_of_queues
-- The number of queues: a small table, and not on the hot path.
SELECT count(*)
  FROM queue
 WHERE removed_at IS NULL;

-- name: nos_of_name
-- All queues that ever had this name: history refers to removed ones.
SELECT queue_no
  FROM queue
 WHERE name = :name;

-- name: count
-- Add the changes of a transaction to the counters.
INSERT INTO counter (
  queue_no, stripe, waiting, ready, leased, dead, sent_total, done_total, dead_total,
  cancelled_total, failed_total, expired_total, claimed_total)
VALUES (
  :queue_no, :stripe, :waiting, :ready, :leased, :dead, :sent_total, :done_total, :dead_total,
  :cancelled_total, :failed_total, :expired_total, :claimed_total)
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

-- name: count_in_new_row
-- Nothing to do: a queue has one row in SQLite.

-- name: count_in_merged_row
-- Nothing to do: a queue has one row in SQLite.

-- name: with_ready
-- Queues with ready messages, to wake claims that wait for them.
SELECT queue_no, sum(ready)
  FROM counter
 GROUP BY queue_no
HAVING sum(ready) > 0
 LIMIT :limit;

-- name: claimable
-- Which of these queues waiting claims should try, and when the next message falls due: two index
-- lookups each. A claim that waits at a removed queue tries again and gets the error.
-- MATERIALIZED and OFFSET 0 keep PostgreSQL from reading the messages of all queues together.
WITH s AS MATERIALIZED (
  SELECT q.queue_no,
         CASE
           WHEN q.removed_at IS NOT NULL
             OR EXISTS (SELECT 1
                          FROM message AS m
                         WHERE m.queue_no = q.queue_no
                           AND m.state = 'ready'
                           AND m.is_blocked = 0
                         LIMIT 1 OFFSET 0)
           THEN 1
           ELSE 0
         END AS is_ready,
         (
           SELECT m.due_at
             FROM message AS m
            WHERE m.queue_no = q.queue_no
              AND m.state IN ('waiting', 'leased')
            ORDER BY m.due_at
            LIMIT 1
         ) AS due_at
    FROM queue AS q
   WHERE q.queue_no IN {list:queue_nos}
     AND (q.removed_at IS NOT NULL
          OR (q.is_paused = 0 AND q.held_by IS NULL))
)
SELECT queue_no, is_ready, due_at
  FROM s
 WHERE is_ready = 1
    OR due_at IS NOT NULL;

-- name: counts
-- The counters of some queues.
SELECT queue_no, sum(waiting), sum(ready), sum(leased), sum(dead), sum(sent_total),
       sum(done_total), sum(dead_total), sum(cancelled_total), sum(failed_total),
       sum(expired_total), sum(claimed_total)
  FROM counter
 WHERE queue_no IN {list:queue_nos}
 GROUP BY queue_no;

-- name: total
-- The sum of the counters of all queues, removed ones included.
SELECT coalesce(sum(waiting), 0), coalesce(sum(ready), 0), coalesce(sum(leased), 0),
       coalesce(sum(dead), 0), coalesce(sum(sent_total), 0), coalesce(sum(done_total), 0),
       coalesce(sum(dead_total), 0), coalesce(sum(cancelled_total), 0),
       coalesce(sum(failed_total), 0), coalesce(sum(expired_total), 0),
       coalesce(sum(claimed_total), 0)
  FROM counter;
