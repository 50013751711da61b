-- These statements never wait: rows and groups that other transactions have locked are skipped.

-- name: heads
-- As in common/, plus locks of rows and groups. Only in a group that we have locked may more
-- messages follow the head, because no other transaction changes them until our commit. Of any
-- other group only the head is taken.
WITH picked AS MATERIALIZED (
  SELECT message_no, group_key, priority, turn, order_no, size
    FROM message
   WHERE queue_no = :queue_no
     AND state = 'ready'
     AND is_blocked = 0
     AND (expires_at IS NULL OR expires_at > :now)
   ORDER BY priority, turn, order_no
   LIMIT :limit
     FOR UPDATE SKIP LOCKED
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

-- name: walk
-- As in common/, but one step at a time, because PostgreSQL would walk through all groups at once:
-- the next message of the group, or else the next head. A separate statement, so that it sees what
-- was committed before we got the locks. A claim or the reaper locks rows before it tries groups, so rows are
-- locked as well.
WITH RECURSIVE head AS MATERIALIZED (
  SELECT h.place, CAST(h.part ->> 0 AS bigint) AS message_no, h.part ->> 1 AS group_key,
         CAST(h.part ->> 2 AS bigint) AS order_no
    FROM json_array_elements(CAST(:heads AS json)) WITH ORDINALITY AS h (part, place)
), walk (place, message_no, group_key, order_no, step) AS (
  SELECT place, message_no, group_key, order_no, 1
    FROM head
   WHERE place = 1
   UNION ALL
  SELECT CASE WHEN f.message_no IS NULL THEN h.place ELSE w.place END,
         coalesce(f.message_no, h.message_no),
         CASE WHEN f.message_no IS NULL THEN h.group_key ELSE w.group_key END,
         coalesce(f.order_no, h.order_no),
         w.step + 1
    FROM walk AS w
    LEFT JOIN LATERAL (SELECT n.message_no, n.order_no
                         FROM (SELECT m.message_no, m.order_no, m.state, m.expires_at
                                 FROM message AS m
                                WHERE m.queue_no = :queue_no
                                  AND m.group_key = w.group_key
                                  AND m.state IN ('waiting', 'ready', 'leased')
                                  AND m.order_no > w.order_no
                                ORDER BY m.order_no
                                LIMIT 1) AS n
                        WHERE n.state = 'ready'
                          AND (n.expires_at IS NULL OR n.expires_at > :now)) AS f
      ON true
    LEFT JOIN head AS h
      ON h.place = w.place + 1
     AND f.message_no IS NULL
   WHERE w.step < CAST(:limit AS integer)
     AND coalesce(f.message_no, h.message_no) IS NOT NULL
), mine AS MATERIALIZED (
  SELECT message_no, size
    FROM message
   WHERE message_no = ANY (ARRAY(SELECT message_no FROM walk))
     FOR UPDATE SKIP LOCKED
)
SELECT w.place, w.message_no, CAST(m.message_no IS NOT NULL AS integer), m.size
  FROM walk AS w
  LEFT JOIN mine AS m
    ON m.message_no = w.message_no
 ORDER BY w.step;
