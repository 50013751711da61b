-- Written so that PostgreSQL has only one plan, as in messages.sql.

-- name: free
-- As in common/, with PostgreSQL's JSON.  Rows of this table are never changed, so they stay in
-- place.
DELETE FROM dedup
 WHERE ctid = ANY (ARRAY(
         SELECT d.ctid
           FROM json_array_elements(CAST(:keys AS json)) AS k (pair)
          CROSS JOIN LATERAL (SELECT ctid
                                FROM dedup
                               WHERE queue_no = CAST(k.pair ->> 0 AS bigint)
                                 AND dedup_key = k.pair ->> 1
                                 AND until_at <= :now
                               LIMIT 1
                                 FOR UPDATE) AS d));

-- name: release
-- As in common/. It never waits: rows without a time limit are locked only by transactions that
-- have locked the message that took the key (store/verbs/lock_order.py).
DELETE FROM dedup
 WHERE ctid = ANY (ARRAY(
         SELECT d.ctid
           FROM json_array_elements(CAST(:keys AS json)) AS k (part)
          CROSS JOIN LATERAL (SELECT ctid
                                FROM dedup
                               WHERE queue_no = CAST(k.part ->> 0 AS bigint)
                                 AND dedup_key = k.part ->> 1
                                 AND id = k.part ->> 2
                                 AND until_at = :no_end
                               LIMIT 1
                                 FOR UPDATE) AS d));

-- name: known
-- As in common/, with PostgreSQL's JSON.
SELECT d.queue_no, d.dedup_key, d.id, d.message_no
  FROM json_array_elements(CAST(:keys AS json)) AS k (pair)
 CROSS JOIN LATERAL (SELECT queue_no, dedup_key, id, message_no
                       FROM dedup
                      WHERE queue_no = CAST(k.pair ->> 0 AS bigint)
                        AND dedup_key = k.pair ->> 1
                      LIMIT 1) AS d;

-- name: forget
-- As in common/, but skips keys that are locked because they are being taken.
DELETE FROM dedup
 WHERE ctid = ANY (ARRAY(
         SELECT ctid
           FROM dedup
          WHERE until_at <= :now
          ORDER BY until_at
          LIMIT :limit
            FOR UPDATE SKIP LOCKED));

-- name: forget_all
-- As in common/, but skips keys that are locked because they are being taken.
DELETE FROM dedup
 WHERE ctid = ANY (ARRAY(
         SELECT ctid
           FROM dedup
          WHERE queue_no = :queue_no
            AND until_at < :no_end
          LIMIT :limit
            FOR UPDATE SKIP LOCKED));
