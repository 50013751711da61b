-- name: lock
-- As in common/, but locked, always in the same order.
WHERE hash IN (SELECT value FROM json_each(:hashes))
ORDER BY hash
  FOR UPDATE;

-- name: lock_in
-- As in common/, but locked, always in the same order.
WHERE state <> 'closed'
  AND state IN (SELECT value FROM json_each(:states))
ORDER BY hash
  FOR UPDATE;

-- name: take_for_release
-- As in common/, with MariaDB's limit.
DELETE FROM unhold_line
 ORDER BY place
 LIMIT :limit
RETURNING place, queue_no;
