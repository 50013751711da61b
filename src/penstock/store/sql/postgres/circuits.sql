-- name: by_hashes
-- As in common/, with PostgreSQL's JSON.
WHERE hash IN (SELECT json_array_elements_text(CAST(:hashes AS json)));

-- name: lock
-- As in common/, but locked, always in the same order.
WHERE hash IN (SELECT json_array_elements_text(CAST(:hashes AS json)))
ORDER BY hash
  FOR UPDATE;

-- name: lock_in
-- As in common/, but locked, always in the same order.
WHERE state <> 'closed'
  AND state IN (SELECT json_array_elements_text(CAST(:states AS json)))
ORDER BY hash
  FOR UPDATE;

-- name: known_samples
-- As in common/.  An array, because its members are looked up in the index one by one.
SELECT request_id, at
  FROM circuit_sample
 WHERE circuit_no = :circuit_no
   AND is_failure = :is_failure
   AND request_id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:request_ids AS json))));

-- name: trim
-- The same as above.
DELETE FROM circuit_sample
 WHERE circuit_no = :circuit_no
   AND is_failure = :is_failure
   AND request_id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:request_ids AS json))));
