-- Claims of some kinds only. MariaDB has no LATERAL, so there is an arm for each kind.

-- name: claim
-- As in common/, plus row locks. The first messages are found without locks; those that another
-- transaction has locked meanwhile are left out, and free_heads finds the ones behind them. Locked
-- at the end again: otherwise rows would be read as they were before they were locked.
SELECT {leased_columns}
  FROM (SELECT message_no AS no, size AS bytes,
               sum(size) OVER (ORDER BY priority, turn, order_no ROWS UNBOUNDED PRECEDING) AS total
          FROM (SELECT message_no, size, priority, turn, order_no
                  FROM message FORCE INDEX (PRIMARY)
                 WHERE message_no IN (
                         SELECT message_no
                           FROM (SELECT message_no
                                   FROM (<<each kinds:
                                         (SELECT message_no, priority, turn, order_no
                                            FROM message FORCE INDEX (message_of_kind)
                                           WHERE queue_no = :queue_no
                                             AND ready_kind = :each
                                             AND is_blocked = 0
                                             AND (expires_at IS NULL OR expires_at > :now)
                                           ORDER BY priority, turn, order_no
                                           LIMIT :limit)>>) AS heads
                                  ORDER BY priority, turn, order_no
                                  LIMIT :limit) AS first_ones)
                   AND queue_no = :queue_no
                   AND state = 'ready'
                   AND is_blocked = 0
                   FOR UPDATE SKIP LOCKED) AS picked) AS sized
 STRAIGHT_JOIN message AS m FORCE INDEX (PRIMARY)
    ON m.message_no = sized.no
 WHERE total <= CAST(:max_bytes AS signed)
    OR total = bytes
   FOR UPDATE;
UPDATE message
   SET {leased}
 WHERE message_no IN ({found:message_no});

-- name: free_heads
-- Locks the first messages of each kind behind messages that other transactions have locked, for a
-- claim that got too few.
SELECT message_no, size
  FROM (<<each kinds:
        SELECT message_no, size, priority, turn, order_no
          FROM (SELECT message_no, size, priority, turn, order_no
                  FROM message FORCE INDEX (message_of_kind)
                 WHERE queue_no = :queue_no
                   AND ready_kind = :each
                   AND is_blocked = 0
                   AND (expires_at IS NULL OR expires_at > :now)
                 ORDER BY priority, turn, order_no
                 LIMIT :limit
                   FOR UPDATE SKIP LOCKED) AS f>>) AS free
 ORDER BY priority, turn, order_no;
