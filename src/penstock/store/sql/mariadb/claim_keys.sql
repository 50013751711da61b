-- name: lock
-- A repeated claim waits until the first one has ended. Always in the same order, as for groups.
SELECT slot
  FROM lock_slot
 WHERE purpose = 2
   AND slot IN ({slots:keys})
 ORDER BY slot
   FOR UPDATE;

-- name: forget
-- As in common/, but skips locked rows of claims in progress.
SELECT queue_no, claim_key
  FROM claim_key FORCE INDEX (claim_key_by_end)
 WHERE until_at <= :now
 ORDER BY until_at
 LIMIT :limit
   FOR UPDATE SKIP LOCKED;
DELETE FROM claim_key
 WHERE (queue_no, claim_key) IN ({found:queue_no,claim_key});
