-- name: lock
-- A repeated claim waits until the first one has ended. Always in the same order and with a limited
-- number of locks, as for groups.
SELECT pg_advisory_xact_lock(1885697142, s.slot)
  FROM (SELECT DISTINCT hashtext(concat(k.pair ->> 0, '/', k.pair ->> 1)) & 2047 AS slot
          FROM json_array_elements(CAST(:keys AS json)) AS k (pair)
         ORDER BY slot) AS s;

-- name: forget
-- As in common/, but skips locked rows of claims in progress. An array, because a subquery may run
-- more than once, so that its limit would not hold.
DELETE FROM claim_key
 WHERE ctid = ANY (ARRAY(
         SELECT ctid
           FROM claim_key
          WHERE until_at <= :now
          ORDER BY until_at
          LIMIT :limit
            FOR UPDATE SKIP LOCKED));
