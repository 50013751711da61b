-- name: lock
-- A wait and its signal exclude each other, so that neither misses the other. Always in the same
-- order, as for groups.
SELECT slot
  FROM lock_slot
 WHERE purpose = 3
   AND slot IN ({slots:names})
 ORDER BY slot
   FOR UPDATE;

-- name: forget
-- As in common/, but skips locked rows.
SELECT name
  FROM "signal" FORCE INDEX (signal_by_end)
 WHERE until_at <= :now
 ORDER BY until_at
 LIMIT :limit
   FOR UPDATE SKIP LOCKED;
DELETE FROM "signal"
 WHERE name IN ({found:name});
