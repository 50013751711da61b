-- Repeatable claims.

-- name: lock
-- Nothing to lock: SQLite has one writer.

-- name: find
-- What a claim with this key has returned, and until when that is remembered.
SELECT given, until_at
  FROM claim_key
 WHERE queue_no = :queue_no
   AND claim_key = :claim_key
   AND until_at > :now;

-- name: keep
-- Remember the result of a claim, in place of an older one.
INSERT INTO claim_key (queue_no, claim_key, given, until_at)
VALUES (:queue_no, :claim_key, :given, :until_at)
    ON CONFLICT (queue_no, claim_key)
    DO UPDATE
   SET given = excluded.given,
       until_at = excluded.until_at;

-- name: forget
-- Delete results that are too old.
DELETE FROM claim_key
 WHERE (queue_no, claim_key) IN (
         SELECT queue_no, claim_key
           FROM claim_key
          WHERE until_at <= :now
          LIMIT :limit
       );
