-- Claims of some kinds only; their cost does not depend on the number of other messages.

-- name: claim
-- Merge the first messages of these kinds, and claim as much as fits into one answer.
UPDATE message
   SET {leased}
 WHERE message_no IN (
         SELECT message_no
           FROM (SELECT message_no, size, sum(size) OVER (ROWS UNBOUNDED PRECEDING) AS total
                   FROM (SELECT m.message_no, m.size
                           FROM json_each(:kinds) AS k
                          CROSS JOIN message AS m
                          WHERE m.message_no IN (
                                  SELECT f.message_no
                                    FROM message AS f
                                   WHERE f.queue_no = :queue_no
                                     AND f.kind = k.value
                                     AND f.state = 'ready'
                                     AND f.is_blocked = 0
                                     AND (f.expires_at IS NULL OR f.expires_at > :now)
                                   ORDER BY f.priority, f.turn, f.order_no
                                   LIMIT :limit
                                )
                          ORDER BY m.priority, m.turn, m.order_no
                          LIMIT :limit) AS picked) AS sized
          WHERE total <= CAST(:max_bytes AS BIGINT)
             OR total = size
       )
RETURNING {columns};

-- name: free_heads
-- Nothing to find: SQLite has one writer, so no message is locked by another.
