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
-- Those of these messages that have not ended.
SELECT id
  FROM message
 WHERE id IN (SELECT value FROM json_each(:ids))
   AND state <> 'dead'
   AND dead_from IS NULL;

-- name: of_ending
-- The result of one ending.
SELECT result
  FROM history_{day}
 WHERE history_no = :history_no;
