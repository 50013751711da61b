-- name: live
-- Those of these messages that are in a queue, dead ones included.
SELECT m.id, q.name, m.state, m.dead_from, m.reason, m.last_error
  FROM message AS m
  LEFT JOIN queue AS q
    ON q.queue_no = m.queue_no
 WHERE m.id IN (SELECT value FROM json_each(:ids));

-- name: ended
-- The endings of these messages on one day, the last of each first.
SELECT h.id, coalesce(q.name, ''), h.outcome, h.reason, h.last_error, h.finished_at, h.result
  FROM history_{day} AS h
  LEFT JOIN queue AS q
    ON q.queue_no = h.queue_no
 WHERE h.id IN (SELECT value FROM json_each(:ids))
 ORDER BY h.history_no DESC;

-- name: running
-- Those of these messages and flows that have not ended.
SELECT id
  FROM message
 WHERE id IN (SELECT value FROM json_each(:ids))
   AND state <> 'dead'
   AND dead_from IS NULL
 UNION ALL
SELECT id
  FROM flow_member
 WHERE id IN (SELECT value FROM json_each(:ids))
   AND state = 'blocked'
 UNION ALL
SELECT id
  FROM flow
 WHERE id IN (SELECT value FROM json_each(:ids))
   AND outcome IS NULL;

-- name: unsent
-- Those of these messages that are members of flows and were never sent.
SELECT m.id, coalesce(q.name, ''), m.state, m.reason, m.ended_at
  FROM flow_member AS m
  LEFT JOIN queue AS q
    ON q.queue_no = m.queue_no
 WHERE m.id IN (SELECT value FROM json_each(:ids))
   AND m.draft IS NOT NULL;

-- name: of_ending
-- The result of one ending.
SELECT result
  FROM history_{day}
 WHERE history_no = :history_no;
