-- name: free
-- As in common/, with MariaDB's JSON.
DELETE d
  FROM {table:keys:bigint,text} AS k
 STRAIGHT_JOIN dedup AS d FORCE INDEX (PRIMARY)
    ON d.queue_no = k.c0
   AND d.dedup_key = k.c1
 WHERE d.until_at <= :now;

-- name: take
-- As in common/: for a key that is taken it returns the id of the message that has it.
INSERT INTO dedup (queue_no, dedup_key, id, message_no, until_at)
VALUES (:queue_no, :dedup_key, :id, :message_no, :until_at)
    ON DUPLICATE KEY UPDATE queue_no = dedup.queue_no
RETURNING id;

-- name: known
-- As in common/, with MariaDB's JSON.
SELECT d.queue_no, d.dedup_key, d.id, d.message_no
  FROM {table:keys:bigint,text} AS k
 STRAIGHT_JOIN dedup AS d FORCE INDEX (PRIMARY)
    ON d.queue_no = k.c0
   AND d.dedup_key = k.c1;

-- name: release
-- As in common/. It never waits: rows without a time limit are locked only by transactions that
-- have locked the message that took the key (store/verbs/lock_order.py).
DELETE d
  FROM {table:keys:bigint,text,text} AS k
 STRAIGHT_JOIN dedup AS d FORCE INDEX (PRIMARY)
    ON d.queue_no = k.c0
   AND d.dedup_key = k.c1
 WHERE d.id = k.c2
   AND d.until_at = :no_end;

-- name: forget
-- As in common/, but skips keys that are locked because they are being taken.
SELECT queue_no, dedup_key
  FROM dedup FORCE INDEX (dedup_by_end)
 WHERE until_at <= :now
 ORDER BY until_at
 LIMIT :limit
   FOR UPDATE SKIP LOCKED;
DELETE FROM dedup
 WHERE (queue_no, dedup_key) IN ({found:queue_no,dedup_key});

-- name: forget_all
-- As in common/, but skips keys that are locked because they are being taken.
SELECT queue_no, dedup_key
  FROM dedup FORCE INDEX (PRIMARY)
 WHERE queue_no = :queue_no
   AND until_at < :no_end
 LIMIT :limit
   FOR UPDATE SKIP LOCKED;
DELETE FROM dedup
 WHERE (queue_no, dedup_key) IN ({found:queue_no,dedup_key});
