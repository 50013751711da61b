-- name: claim
-- As in common/, plus row locks. It first counts how many of the first messages have which kind;
-- then it locks that many of each kind, skipping locked ones, so that it locks no more than the limit.
WITH near AS MATERIALIZED (
  SELECT k.kind, f.priority, f.turn, f.order_no
    FROM json_array_elements_text(CAST(:kinds AS json)) AS k (kind)
   CROSS JOIN LATERAL (SELECT priority, turn, order_no
                         FROM message
                        WHERE queue_no = :queue_no
                          AND kind = k.kind
                          AND state = 'ready'
                          AND is_blocked = 0
                          AND (expires_at IS NULL OR expires_at > :now)
                        ORDER BY priority, turn, order_no
                        LIMIT :limit) AS f
), share AS MATERIALIZED (
  SELECT head.kind, count(*) AS wanted
    FROM (SELECT kind
            FROM near
           ORDER BY priority, turn, order_no
           LIMIT :limit) AS head
   GROUP BY head.kind
), picked AS MATERIALIZED (
  SELECT f.message_no, f.size, f.priority, f.turn, f.order_no
    FROM share AS s
   CROSS JOIN LATERAL (SELECT message_no, size, priority, turn, order_no
                         FROM message
                        WHERE queue_no = :queue_no
                          AND kind = s.kind
                          AND state = 'ready'
                          AND is_blocked = 0
                          AND (expires_at IS NULL OR expires_at > :now)
                        ORDER BY priority, turn, order_no
                        LIMIT s.wanted
                          FOR UPDATE SKIP LOCKED) AS f
), sized AS (
  SELECT message_no, size,
         sum(size) OVER (ORDER BY priority, turn, order_no ROWS UNBOUNDED PRECEDING) AS total
    FROM picked
)
UPDATE message
   SET {leased}
 WHERE message_no = ANY (ARRAY(SELECT message_no
                                 FROM sized
                                WHERE total <= CAST(:max_bytes AS bigint)
                                   OR total = size))
RETURNING {columns};

-- name: free_heads
-- Locks the first messages of each kind behind messages that other transactions have locked, for a claim
-- that got too few.
SELECT f.message_no, f.size
  FROM json_array_elements_text(CAST(:kinds AS json)) AS k (kind)
 CROSS JOIN LATERAL (SELECT message_no, size, priority, turn, order_no
                       FROM message
                      WHERE queue_no = :queue_no
                        AND kind = k.kind
                        AND state = 'ready'
                        AND is_blocked = 0
                        AND (expires_at IS NULL OR expires_at > :now)
                      ORDER BY priority, turn, order_no
                      LIMIT :limit
                        FOR UPDATE SKIP LOCKED) AS f
 ORDER BY f.priority, f.turn, f.order_no;
