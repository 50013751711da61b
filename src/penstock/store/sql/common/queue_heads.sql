-- The first messages of a queue: their size, and leasing them.

-- name: claim_small
-- Like messages.claim, but ignores sizes: the window function would cost more than the rest.
UPDATE message
   SET {leased}
 WHERE message_no IN (
         SELECT message_no
           FROM message
          WHERE queue_no = :queue_no
            AND state = 'ready'
            AND is_blocked = 0
            AND (expires_at IS NULL OR expires_at > :now)
          ORDER BY priority, turn, order_no
          LIMIT :limit
       )
RETURNING {columns};

-- name: size
-- The bytes of what would be claimed.
SELECT coalesce(sum(size), 0)
  FROM (SELECT size
          FROM message
         WHERE queue_no = :queue_no
           AND state = 'ready'
           AND is_blocked = 0
           AND (expires_at IS NULL OR expires_at > :now)
         ORDER BY priority, turn, order_no
         LIMIT :limit) AS head;

-- name: lease
-- Lease messages that were found, blocked or not.
UPDATE message
   SET {leased}
 WHERE message_no IN {list:message_nos}
RETURNING {columns};
