-- name: search
-- Ended messages, newest first. The caller adds the conditions that apply.
SELECT h.history_no, h.id, h.message_no, coalesce(q.name, ''), h.outcome, h.reason, h.kind,
       h.entity_id, h.tag1, h.tag2, h.group_key, h.priority, h.sent_at, h.due_at,
       h.first_leased_at, h.leased_at, h.finished_at, h.attempts, h.failures, h.leased_by,
       h.last_error, h.size, h.body_day, h.route, h.crashes
  FROM history_{day} AS h
  LEFT JOIN queue AS q
    ON q.queue_no = h.queue_no
 WHERE h.finished_at >= :from_at
   AND h.finished_at < :to_at
   AND (h.finished_at, h.history_no) < (:before_at, :before_no)
   {conditions}
 ORDER BY h.finished_at DESC, h.history_no DESC
 LIMIT :limit;

-- name: where_id
-- A condition of search.
AND h.id = :id

-- name: where_queue
-- A condition of search.
AND h.queue_no IN {list:queue_nos}

-- name: where_kind
-- A condition of search.
AND h.kind = :kind

-- name: where_entity_id
-- A condition of search.
AND h.entity_id = :entity_id

-- name: where_tag
-- A condition of search; one arm per index.
AND h.history_no IN (SELECT t.history_no FROM history_{day} AS t WHERE t.tag1 = :tag
                      UNION ALL
                     SELECT t.history_no FROM history_{day} AS t WHERE t.tag2 = :tag)

-- name: where_tag1
-- A condition of search.
AND h.tag1 = :tag1

-- name: where_tag2
-- A condition of search.
AND h.tag2 = :tag2

-- name: where_outcome
-- A condition of search.
AND h.outcome = :outcome

-- name: attempts
-- The attempts of a message on one day.
SELECT id, message_no, queue_no, lease_no, outcome, leased_at, ended_at, leased_by, error
  FROM attempt_{day}
 WHERE id = :id
 ORDER BY ended_at, attempt_no;
