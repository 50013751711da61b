-- name: queues_with_ready
-- Queues with claimable messages by their counters: the cost does not grow with the messages.
SELECT q.queue_no
  FROM queue AS q
 WHERE q.removed_at IS NULL
   AND q.is_paused = 0
   AND q.held_by IS NULL
   AND (SELECT sum(c.ready)
          FROM counter AS c
         WHERE c.queue_no = q.queue_no) > 0
 ORDER BY q.queue_no;

-- name: end_backoff
-- Make the first messages of these queues due now if they wait after a failure; the next claim
-- brings them back. The first condition on the state is that of the index.
UPDATE message
   SET due_at = :now
 WHERE message_no IN (SELECT message_no
                        FROM message
                       WHERE queue_no IN {list:queue_nos}
                         AND state IN ('waiting', 'leased')
                         AND state = 'waiting'
                         AND due_at > :now
                         AND is_blocked = 0
                         AND failures > 0
                       {lock})
RETURNING queue_no;
