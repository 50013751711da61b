-- name: marks
-- The progress of all sources.
SELECT source, day, done_no, planned_no, rows_total, is_closed, moved_at
  FROM archive_mark
 WHERE source <> 'snapshots'
 ORDER BY source, day;

-- name: mark
-- The progress of one source.
SELECT source, day, done_no, planned_no, rows_total, is_closed, moved_at
  FROM archive_mark
 WHERE source = :source
   AND day = :day;

-- name: plan
-- Record the rows of the next file; only if no other node has advanced or planned meanwhile.
INSERT INTO archive_mark (source, day, done_no, planned_no)
VALUES (:source, :day, :done_no, :planned_no)
    ON CONFLICT (source, day)
    DO UPDATE
   SET planned_no = excluded.planned_no
 WHERE archive_mark.done_no = excluded.done_no
   AND archive_mark.planned_no = excluded.done_no
RETURNING planned_no;

-- name: move
-- The planned file is in place; likewise.
UPDATE archive_mark
   SET done_no = planned_no,
       rows_total = rows_total + :rows,
       moved_at = :now
 WHERE source = :source
   AND day = :day
   AND done_no = :done_no
   AND planned_no = :planned_no;

-- name: close
-- Nothing is added to this day any more, and all of it is in the lake.
INSERT INTO archive_mark (source, day, is_closed, moved_at)
VALUES (:source, :day, 1, :now)
    ON CONFLICT (source, day)
    DO UPDATE
   SET is_closed = 1
 WHERE archive_mark.done_no = :done_no
   AND archive_mark.planned_no = :done_no;

-- name: forget_marks
-- A new lake begins …
DELETE FROM archive_mark;

-- name: forget_lake
-- … with an id of its own.
DELETE FROM meta
 WHERE name = 'lake_id';

-- name: next_snapshot
-- The number of a snapshot, never reused.
INSERT INTO archive_mark (source, day, planned_no)
VALUES ('snapshots', -1, 1)
    ON CONFLICT (source, day)
    DO UPDATE
   SET planned_no = archive_mark.planned_no + 1
RETURNING planned_no;

-- name: end_snapshot
-- The snapshot is in the lake.
UPDATE archive_mark
   SET done_no = :snapshot_no,
       rows_total = :rows,
       moved_at = :taken_at
 WHERE source = 'snapshots'
   AND day = -1
   AND done_no < :snapshot_no;

-- name: snapshot
-- The latest snapshot.
SELECT done_no, rows_total, moved_at
  FROM archive_mark
 WHERE source = 'snapshots'
   AND done_no > 0;

-- name: last_history
-- The largest number of a day.
SELECT max(history_no)
  FROM history_{day};

-- name: last_attempts
-- Likewise.
SELECT max(attempt_no)
  FROM attempt_{day};

-- name: last_facts
-- Likewise, of them all.
SELECT max(fact_no)
  FROM fact;

-- name: last_backlog
-- Likewise.
SELECT max(sample_no)
  FROM backlog_sample;

-- name: first_message
-- The smallest number of live messages.
SELECT min(message_no)
  FROM message;

-- name: last_message
-- The largest number of live messages.
SELECT max(message_no)
  FROM message;

-- name: writers
-- Nothing to find: SQLite has one writer, and its numbers become visible in order.

-- name: history
-- History of a day in the order of row numbers, with the columns of the lake, and the day of the
-- body.
SELECT h.history_no, h.message_no, h.id, h.queue_no, coalesce(q.name, ''), h.outcome, h.reason,
       h.kind, h.entity_id, h.tag1, h.tag2, h.group_key, h.priority, h.sent_at, h.due_at,
       h.first_leased_at, h.leased_at, h.finished_at, h.attempts, h.failures, h.crashes, h.lease_no,
       h.leased_by, h.last_error, h.size, h.route, h.held_key, h.body_day
  FROM history_{day} AS h
  LEFT JOIN queue AS q
    ON q.queue_no = h.queue_no
 WHERE h.history_no > :after_no
   AND h.history_no <= :upto_no
 ORDER BY h.history_no
 LIMIT :limit;

-- name: attempts
-- Attempts of a day, likewise.
SELECT a.attempt_no, a.message_no, a.id, a.queue_no, coalesce(q.name, ''), a.lease_no, a.outcome,
       a.leased_at, a.ended_at, a.leased_by, a.error
  FROM attempt_{day} AS a
  LEFT JOIN queue AS q
    ON q.queue_no = a.queue_no
 WHERE a.attempt_no > :after_no
   AND a.attempt_no <= :upto_no
 ORDER BY a.attempt_no
 LIMIT :limit;

-- name: facts
-- Facts, likewise.
SELECT fact_no, at, kind, subject, data
  FROM fact
 WHERE fact_no > :after_no
   AND fact_no <= :upto_no
 ORDER BY fact_no
 LIMIT :limit;

-- name: backlog
-- Samples of the counters, likewise.
SELECT s.sample_no, s.at, s.queue_no, coalesce(q.name, ''), s.waiting, s.ready, s.leased, s.dead,
       s.sent_total, s.done_total, s.dead_total, s.cancelled_total, s.failed_total,
       s.expired_total, s.claimed_total
  FROM backlog_sample AS s
  LEFT JOIN queue AS q
    ON q.queue_no = s.queue_no
 WHERE s.sample_no > :after_no
   AND s.sample_no <= :upto_no
 ORDER BY s.sample_no
 LIMIT :limit;

-- name: messages
-- Live messages in the order of their numbers, with the columns of snapshots, and the day of the
-- body.
SELECT m.message_no, m.id, CAST(:taken_at AS BIGINT), m.queue_no, coalesce(q.name, ''), m.state,
       m.kind, m.entity_id, m.tag1, m.tag2, m.group_key, m.priority, m.order_no, m.sent_at,
       m.due_at, m.expires_at, m.first_leased_at, m.leased_at, m.leased_by, m.attempts,
       m.max_attempts, m.failures, m.crashes, m.lease_no, m.last_error, d.name, m.reason,
       m.dedup_key, m.dedup_until, m.timeout_ms, m.retries_timeouts, m.route, m.size, m.body_day
  FROM message AS m
  LEFT JOIN queue AS q
    ON q.queue_no = m.queue_no
  LEFT JOIN queue AS d
    ON d.queue_no = m.dead_from
 WHERE m.message_no > :after_no
   AND m.message_no <= :upto_no
 ORDER BY m.message_no
 LIMIT :limit;

-- name: take_samples
-- The counters of queues in which something is, or has happened since the sample before.
INSERT INTO backlog_sample (
  at, queue_no, waiting, ready, leased, dead, sent_total, done_total, dead_total, cancelled_total,
  failed_total, expired_total, claimed_total)
SELECT CAST(:now AS BIGINT), c.queue_no, c.waiting, c.ready, c.leased, c.dead, c.sent_total,
       c.done_total, c.dead_total, c.cancelled_total, c.failed_total, c.expired_total,
       c.claimed_total
  FROM (SELECT queue_no, sum(waiting) AS waiting, sum(ready) AS ready, sum(leased) AS leased,
               sum(dead) AS dead, sum(sent_total) AS sent_total, sum(done_total) AS done_total,
               sum(dead_total) AS dead_total, sum(cancelled_total) AS cancelled_total,
               sum(failed_total) AS failed_total, sum(expired_total) AS expired_total,
               sum(claimed_total) AS claimed_total
          FROM counter
         GROUP BY queue_no) AS c
 WHERE c.waiting + c.ready + c.leased + c.dead > 0
    OR NOT EXISTS (
         SELECT 1
           FROM backlog_sample AS s
          WHERE s.sample_no = (SELECT max(l.sample_no)
                                 FROM backlog_sample AS l
                                WHERE l.queue_no = c.queue_no)
            AND s.waiting + s.ready + s.leased + s.dead = 0
            AND s.sent_total + s.done_total + s.dead_total + s.cancelled_total + s.failed_total
                + s.expired_total + s.claimed_total
                = c.sent_total + c.done_total + c.dead_total + c.cancelled_total + c.failed_total
                + c.expired_total + c.claimed_total
       );

-- name: forget_samples
-- Those that are old, and in the lake if there is one; some at a time.
DELETE FROM backlog_sample
 WHERE sample_no IN (
         SELECT sample_no
           FROM backlog_sample
          WHERE at < :before_at
            AND sample_no <= :upto_no
          ORDER BY at
          LIMIT :limit
       );
