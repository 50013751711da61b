-- These statements never wait: rows and groups that other transactions have locked are skipped.

-- name: heads
-- As in common/, plus locks of rows and groups. Only in a group that we have locked may more
-- messages follow the head, because no other transaction changes them until our commit. Of any
-- other group only the head is taken.
SELECT picked.message_no, CASE WHEN s.slot IS NOT NULL THEN picked.group_key END, picked.order_no,
       picked.size
  FROM (SELECT message_no, queue_no, group_key, priority, turn, order_no, size
          FROM message FORCE INDEX (message_to_claim)
         WHERE queue_no = :queue_no
           AND state = 'ready'
           AND is_blocked = 0
           AND (expires_at IS NULL OR expires_at > :now)
         ORDER BY priority, turn, order_no
         LIMIT :limit
           FOR UPDATE SKIP LOCKED) AS picked
  LEFT JOIN lock_slot AS s FORCE INDEX (PRIMARY)
    ON s.purpose = 1
   AND s.slot = {slot:picked.queue_no,picked.group_key}
 ORDER BY picked.priority, picked.turn, picked.order_no
   FOR UPDATE SKIP LOCKED;

-- name: walk
-- As in common/, but one step at a time: the next message of the group, or else the next head. A
-- separate statement, so that it sees what was committed before we got the locks. A claim or the
-- reaper locks rows before it tries groups, so rows are locked as well.
WITH RECURSIVE head AS (
  SELECT h.place, h.message_no, h.group_key, h.order_no
    FROM JSON_TABLE(:heads, '$[*]' COLUMNS (
           place FOR ORDINALITY,
           message_no bigint PATH '$[0]',
           group_key varchar(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PATH '$[1]',
           order_no bigint PATH '$[2]')) AS h
), walk AS (
  SELECT CAST(place AS signed) AS place, message_no, group_key, order_no, 1 AS step
    FROM head
   WHERE place = 1
   UNION ALL
  SELECT CASE WHEN f.message_no IS NULL THEN h.place ELSE w.place END,
         coalesce(f.message_no, h.message_no),
         CASE WHEN f.message_no IS NULL THEN h.group_key ELSE w.group_key END,
         coalesce(f.order_no, h.order_no),
         w.step + 1
    FROM walk AS w
    LEFT JOIN message AS f
      ON f.message_no = (SELECT m.message_no
                           FROM message AS m FORCE INDEX (message_in_group)
                          WHERE m.queue_no = :queue_no
                            AND m.live_group = w.group_key
                            AND m.order_no > w.order_no
                          ORDER BY m.order_no
                          LIMIT 1)
     AND f.state = 'ready'
     AND (f.expires_at IS NULL OR f.expires_at > :now)
    LEFT JOIN head AS h
      ON h.place = w.place + 1
     AND f.message_no IS NULL
   WHERE w.step < :limit
     AND coalesce(f.message_no, h.message_no) IS NOT NULL
)
SELECT w.place, w.message_no, m.message_no IS NOT NULL, m.size
  FROM walk AS w
  LEFT JOIN message AS m FORCE INDEX (PRIMARY)
    ON m.message_no = w.message_no
 ORDER BY w.step
   FOR UPDATE SKIP LOCKED;
