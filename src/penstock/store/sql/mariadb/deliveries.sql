-- name: end_backoff
-- As in common/: the first statement returns what the second one changes.
SELECT queue_no, message_no AS found_no
  FROM message FORCE INDEX (message_to_fall_due)
 WHERE queue_no IN {list:queue_nos}
   AND state = 'waiting'
   AND due_at > :now
   AND is_blocked = 0
   AND failures > 0
 {lock};
UPDATE message
   SET due_at = :now
 WHERE message_no IN ({found:found_no});
