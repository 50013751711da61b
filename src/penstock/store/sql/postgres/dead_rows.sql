-- Claims from queues whose index of ready messages has many dead entries, and what finds those
-- queues. See store/dead_rows. A part of the index is a JSON list: the place where it begins (three
-- numbers), the priority with which it ends, and the kind of its messages. Without an end, it is
-- that one place. Parts are read in order, and only as far as necessary.

-- name: read_in_order
-- For this transaction: the planner expects few rows and would rather sort them than read the index
-- in its order, but among dead rows there may be many.
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true);

-- name: ready
-- The ready messages in a part. There is no condition on its end that PostgreSQL would stop at,
-- except one on the priority.
LATERAL (
  SELECT *
    FROM (SELECT message_no, group_key, size, priority, turn, order_no, due_at
            FROM message
           WHERE queue_no = :queue_no
             AND state = 'ready'
             AND is_blocked = 0
             {condition}
             AND (priority, turn, order_no)
                 >= (CAST(r.part ->> 0 AS integer), CAST(r.part ->> 1 AS bigint),
                     CAST(r.part ->> 2 AS bigint))
             AND priority <= CAST(r.part ->> 3 AS integer)
           ORDER BY priority, turn, order_no
           LIMIT {limit}
             {lock}) AS range
   UNION ALL
  SELECT *
    FROM (SELECT message_no, group_key, size, priority, turn, order_no, due_at
            FROM message
           WHERE r.part ->> 3 IS NULL
             AND queue_no = :queue_no
             AND state = 'ready'
             AND is_blocked = 0
             {condition}
             AND priority = CAST(r.part ->> 0 AS integer)
             AND turn = CAST(r.part ->> 1 AS bigint)
             AND order_no = CAST(r.part ->> 2 AS bigint)
           LIMIT 1
             {lock}) AS place
)

-- name: unexpired
-- The condition of claims.
AND (expires_at IS NULL OR expires_at > :now)

-- name: of_kind
-- The condition of messages of one kind.
AND kind = r.part ->> 4

-- name: claim
-- As messages.claim.
WITH picked AS MATERIALIZED (
  SELECT m.message_no, m.size, m.priority, m.turn, m.order_no
    FROM json_array_elements(CAST(:parts AS json)) AS r (part)
   CROSS JOIN {locked} AS m
   LIMIT :limit
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

-- name: claim_kinds
-- As claims_by_kind.claim.
WITH near AS MATERIALIZED (
  SELECT r.no, f.priority, f.turn, f.order_no
    FROM json_array_elements(CAST(:parts AS json)) WITH ORDINALITY AS r (part, no)
   CROSS JOIN {ready} AS f
), share AS MATERIALIZED (
  SELECT head.no, count(*) AS wanted
    FROM (SELECT no
            FROM near
           ORDER BY priority, turn, order_no
           LIMIT :limit) AS head
   GROUP BY head.no
), picked AS MATERIALIZED (
  SELECT f.message_no, f.size, f.priority, f.turn, f.order_no
    FROM (SELECT part, wanted
            FROM json_array_elements(CAST(:parts AS json)) WITH ORDINALITY AS p (part, no)
            JOIN share
           USING (no)) AS r
   CROSS JOIN {wanted} AS f
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
-- As claims_by_kind.free_heads.
SELECT f.message_no, f.size
  FROM json_array_elements(CAST(:parts AS json)) AS r (part)
 CROSS JOIN {locked} AS f
 ORDER BY f.priority, f.turn, f.order_no;

-- name: heads
-- As consecutive_claims.heads.
WITH picked AS MATERIALIZED (
  SELECT m.message_no, m.group_key, m.priority, m.turn, m.order_no, m.size
    FROM json_array_elements(CAST(:parts AS json)) AS r (part)
   CROSS JOIN {locked} AS m
   LIMIT :limit
)
SELECT message_no,
       CASE
         WHEN pg_try_advisory_xact_lock(
                1885697140, hashtext(concat(CAST(:queue_no AS bigint), '/', group_key)) & 2047)
         THEN group_key
       END,
       order_no,
       size
  FROM picked
 ORDER BY priority, turn, order_no;

-- name: visible
-- The first ready messages: their places, and since when they are due.
SELECT m.priority, m.turn, m.order_no, m.due_at
  FROM json_array_elements(CAST(:parts AS json)) AS r (part)
 CROSS JOIN {ready} AS m
 LIMIT :limit;

-- name: fronts
-- The first ready message and the first due date of each of these queues.
SELECT q.queue_no,
       (
         SELECT m.order_no
           FROM message AS m
          WHERE m.queue_no = q.queue_no
            AND m.state = 'ready'
            AND m.is_blocked = 0
          ORDER BY m.priority, m.turn, m.order_no
          LIMIT 1
       ),
       (
         SELECT m.due_at
           FROM message AS m
          WHERE m.queue_no = q.queue_no
            AND m.state IN ('waiting', 'leased')
          ORDER BY m.due_at
          LIMIT 1
       )
  FROM queue AS q
 WHERE q.queue_no IN {list:queue_nos};

-- name: queues_with_due
-- As messages.queues_with_due; :floors has the instants before which queues have dead rows only.
SELECT q.queue_no
  FROM queue AS q
 WHERE q.removed_at IS NULL
   AND EXISTS (SELECT 1
                 FROM message AS m
                WHERE m.queue_no = q.queue_no
                  AND m.state IN ('waiting', 'leased')
                  AND m.due_at >= coalesce(
                        CAST(CAST(:floors AS json) ->> CAST(q.queue_no AS text) AS bigint), 0)
                  AND m.due_at <= :now
                LIMIT 1 OFFSET 0);

-- name: first_due
-- The first due date of a queue in a period, expired leases included.
SELECT due_at
  FROM message
 WHERE queue_no = :queue_no
   AND state IN ('waiting', 'leased')
   AND due_at >= :due_from
   AND due_at <= :until
 ORDER BY due_at
 LIMIT 1;

-- name: entries_read
-- How many entries of these indexes this session has read lately, dead ones included.
SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))
  FROM pg_index
 WHERE indrelid = to_regclass('message')
   AND indexrelid IN (to_regclass('message_to_claim'), to_regclass('message_of_kind'),
                      to_regclass('message_to_fall_due'));
