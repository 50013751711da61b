-- name: live
-- As in common/, looked up by a list.
SELECT m.id, q.name, m.state, m.dead_from, m.reason, m.last_error
  FROM message AS m
  LEFT JOIN queue AS q
    ON q.queue_no = m.queue_no
 WHERE m.id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))));

-- name: ended
-- As in common/, looked up by a list.
SELECT h.id, coalesce(q.name, ''), h.outcome, h.reason, h.last_error, h.finished_at, h.result
  FROM history_{day} AS h
  LEFT JOIN queue AS q
    ON q.queue_no = h.queue_no
 WHERE h.id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
 ORDER BY h.history_no DESC;

-- name: running
-- As in common/, looked up by a list.
SELECT id
  FROM message
 WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
   AND state <> 'dead'
   AND dead_from IS NULL
 UNION ALL
SELECT id
  FROM flow_member
 WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
   AND state = 'blocked'
 UNION ALL
SELECT id
  FROM flow
 WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
   AND outcome IS NULL;

-- name: unsent
-- As in common/, looked up by a list.
SELECT m.id, coalesce(q.name, ''), m.state, m.reason, m.ended_at
  FROM flow_member AS m
  LEFT JOIN queue AS q
    ON q.queue_no = m.queue_no
 WHERE m.id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
   AND m.draft IS NOT NULL;
