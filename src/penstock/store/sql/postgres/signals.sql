-- name: lock
-- A wait and its signal exclude each other, so that neither misses the other. Always in the same
-- order and with a limited number of locks, as for groups.
SELECT pg_advisory_xact_lock(1885697144, s.slot)
  FROM (SELECT DISTINCT hashtext(k.name) & 2047 AS slot
          FROM json_array_elements_text(CAST(:names AS json)) AS k (name)
         ORDER BY slot) AS s;

-- name: forget
-- As in common/, but skips locked rows. An array, because a subquery may run more than once, so
-- that its limit would not hold.
DELETE FROM signal
 WHERE ctid = ANY (ARRAY(
         SELECT ctid
           FROM signal
          WHERE until_at <= :now
          ORDER BY until_at
          LIMIT :limit
            FOR UPDATE SKIP LOCKED));
