-- name: free
-- Release keys whose window is over.
DELETE FROM dedup
 WHERE until_at <= :now
   AND (queue_no, dedup_key) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:keys));

-- name: take
-- Take keys; returns those that were free.
INSERT INTO dedup (queue_no, dedup_key, id, message_no, until_at)
VALUES (:queue_no, :dedup_key, :id, :message_no, :until_at)
    ON CONFLICT (queue_no, dedup_key)
    DO NOTHING
RETURNING id;

-- name: known
-- The messages of keys that were not free.
SELECT d.queue_no, d.dedup_key, d.id, d.message_no
  FROM json_each(:keys) AS k
  JOIN dedup AS d
    ON d.queue_no = k.value ->> 0
   AND d.dedup_key = k.value ->> 1;

-- name: release
-- Keys that were taken without a time limit, by the messages that took them.
DELETE FROM dedup
 WHERE (queue_no, dedup_key) IN (
         SELECT d.queue_no, d.dedup_key
           FROM json_each(:keys) AS k
          CROSS JOIN dedup AS d
          WHERE d.queue_no = k.value ->> 0
            AND d.dedup_key = k.value ->> 1
            AND d.id = k.value ->> 2
            AND d.until_at = :no_end
       );

-- name: forget
-- Delete keys whose window is over.
DELETE FROM dedup
 WHERE (queue_no, dedup_key) IN (
         SELECT queue_no, dedup_key
           FROM dedup
          WHERE until_at <= :now
          LIMIT :limit
       );

-- name: forget_all
-- Delete the keys of a queue that is purged, some at a time, except keys without a time limit,
-- which the messages that took them release.
DELETE FROM dedup
 WHERE (queue_no, dedup_key) IN (
         SELECT queue_no, dedup_key
           FROM dedup
          WHERE queue_no = :queue_no
            AND until_at < :no_end
          LIMIT :limit
       );
