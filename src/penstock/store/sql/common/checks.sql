-- name: in_states
-- How many messages are really there: reads them all, so this is for check-ups only.
SELECT queue_no, state, count(*)
  FROM message
 GROUP BY queue_no, state;
