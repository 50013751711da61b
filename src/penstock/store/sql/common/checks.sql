-- name: in_states
-- The real numbers of messages: reads them all, so only for penstock doctor.
SELECT queue_no, state, count(*)
  FROM message
 GROUP BY queue_no, state;
