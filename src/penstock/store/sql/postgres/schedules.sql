-- name: to_change
-- As in common/, but locked: whoever fires it just now finishes first.
WHERE name = :name
  FOR UPDATE;

-- name: to_fire
-- As in common/, but locked: of several nodes one fires it, and the others do not wait.
WHERE name = :name
  AND is_paused = 0
  AND next_at <= :now
  FOR UPDATE SKIP LOCKED;
