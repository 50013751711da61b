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
-- Record that the planned file is in place, under the same condition.
UPDATE archive_mark
   SET done_no = planned_no,
       rows_total = rows_total + :rows,
       moved_at = :now
 WHERE source = :source
   AND day = :day
   AND done_no = :done_no
   AND planned_no = :planned_no;

-- name: close
-- Close a day: no more rows will be added, and all are in the lake.
INSERT INTO archive_mark (source, day, is_closed, moved_at)
VALUES (:source, :day, 1, :now)
    ON CONFLICT (source, day)
    DO UPDATE
   SET is_closed = 1
 WHERE archive_mark.done_no = :done_no
   AND archive_mark.planned_no = :done_no;

-- name: forget_marks
-- Begin a new lake …
DELETE FROM archive_mark;

-- name: forget_lake
-- … with its own id.
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
-- Record that the snapshot is in the lake.
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
-- The largest number in the history of a day.
SELECT max(history_no)
  FROM history_{day};

-- name: last_attempts
-- The largest number of the attempts of a day.
SELECT max(attempt_no)
  FROM attempt_{day};

-- name: last_facts
-- The largest number of all facts.
SELECT max(fact_no)
  FROM fact;

-- name: last_backlog
-- The largest number of all counters of queues.
SELECT max(sample_no)
  FROM minute_counter;

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
-- History of a day in the order of row numbers, with the columns of the lake except those of steps,
-- and the day of the body.  Only members of flows are looked up among these.
SELECT h.history_no, h.message_no, h.id, h.queue_no, coalesce(q.name, ''), h.outcome, h.reason,
       h.kind, h.entity_id, h.tag1, h.tag2, h.group_key, h.priority, h.sent_at, h.due_at,
       h.first_leased_at, h.leased_at, h.finished_at, h.attempts, h.failures, h.crashes, h.lease_no,
       h.leased_by, h.last_error, h.size, h.route, h.held_key, octet_length(h.result), h.flow_no,
       f.id, m.name, f.name, m.role,
       (SELECT string_agg(CAST(e.parent_no AS TEXT), ',' ORDER BY e.parent_no)
          FROM flow_edge AS e
         WHERE e.child_no = m.message_no),
       h.body_day
  FROM history_{day} AS h
  LEFT JOIN queue AS q
    ON q.queue_no = h.queue_no
  LEFT JOIN flow AS f
    ON f.flow_no = h.flow_no
  LEFT JOIN flow_member AS m
    ON m.message_no = CASE WHEN h.flow_no IS NOT NULL THEN h.message_no END
 WHERE h.history_no > :after_no
   AND h.history_no <= :upto_no
 ORDER BY h.history_no
 LIMIT :limit;

-- name: attempts
-- Attempts of a day, in the same way.
SELECT a.attempt_no, a.message_no, a.id, a.queue_no, coalesce(q.name, ''), a.lease_no, a.outcome,
       a.leased_at, a.ended_at, a.leased_by, a.error, m.flow_no
  FROM attempt_{day} AS a
  LEFT JOIN queue AS q
    ON q.queue_no = a.queue_no
  LEFT JOIN flow_member AS m
    ON m.message_no = a.message_no
 WHERE a.attempt_no > :after_no
   AND a.attempt_no <= :upto_no
 ORDER BY a.attempt_no
 LIMIT :limit;

-- name: facts
-- Facts, in the same way.
SELECT fact_no, at, kind, subject, data
  FROM fact
 WHERE fact_no > :after_no
   AND fact_no <= :upto_no
 ORDER BY fact_no
 LIMIT :limit;

-- name: backlog
-- Counters of queues, in the same way.
SELECT s.sample_no, s.at, s.queue_no, coalesce(q.name, ''), s.waiting, s.ready, s.leased, s.dead,
       s.sent_total, s.done_total, s.dead_total, s.cancelled_total, s.failed_total,
       s.expired_total, s.claimed_total
  FROM minute_counter AS s
  LEFT JOIN queue AS q
    ON q.queue_no = s.queue_no
 WHERE s.sample_no > :after_no
   AND s.sample_no <= :upto_no
   AND s.is_for_lake = 1
 ORDER BY s.sample_no
 LIMIT :limit;

-- name: messages
-- Live messages in the order of their numbers, with the columns of snapshots, and the day of the
-- body.
SELECT m.message_no, m.id, CAST(:taken_at AS BIGINT), m.queue_no, coalesce(q.name, ''), m.state,
       m.kind, m.entity_id, m.tag1, m.tag2, m.group_key, m.priority, m.order_no, m.sent_at,
       m.due_at, m.expires_at, m.first_leased_at, m.leased_at, m.leased_by, m.attempts,
       m.max_attempts, m.failures, m.crashes, m.lease_no, m.last_error, d.name, m.reason,
       m.dedup_key, m.dedup_until, m.timeout_ms, m.retries_timeouts, m.route, m.size, m.body_day,
       m.flow_no, f.id, x.name
  FROM message AS m
  LEFT JOIN queue AS q
    ON q.queue_no = m.queue_no
  LEFT JOIN queue AS d
    ON d.queue_no = m.dead_from
  LEFT JOIN flow AS f
    ON f.flow_no = m.flow_no
  LEFT JOIN flow_member AS x
    ON x.message_no = CASE WHEN m.flow_no IS NOT NULL THEN m.message_no END
 WHERE m.message_no > :after_no
   AND m.message_no <= :upto_no
 ORDER BY m.message_no
 LIMIT :limit;

-- name: results
-- Results of some endings of a day.
SELECT history_no, result
  FROM history_{day}
 WHERE history_no > :after_no
   AND history_no <= :upto_no
   AND result IS NOT NULL;
