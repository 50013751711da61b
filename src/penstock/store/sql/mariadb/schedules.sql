-- name: lock
-- As in common/, but locked: a firing in progress finishes first.
WHERE name = :name
  FOR UPDATE;

-- name: lock_due
-- As in common/, but locked: one of several nodes fires it, and the others do not wait.
WHERE name = :name
  AND is_paused = 0
  AND next_at <= :now
  FOR UPDATE SKIP LOCKED;
