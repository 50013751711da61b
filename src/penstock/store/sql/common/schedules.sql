-- name: add
-- A new schedule; no row comes back if there is one of this name.
INSERT INTO schedule (
  name, words, is_paused, next_at, last_at, last_id, fired_total, skipped_total, last_error,
  created_at, changed_at, owner)
VALUES (
  :name, :words, :is_paused, :next_at, :last_at, :last_id, :fired_total, :skipped_total,
  :last_error, :created_at, :changed_at, :owner)
    ON CONFLICT DO NOTHING
RETURNING name;

-- name: save
-- Everything that may change.
UPDATE schedule
   SET words = :words,
       is_paused = :is_paused,
       next_at = :next_at,
       last_at = :last_at,
       last_id = :last_id,
       fired_total = :fired_total,
       skipped_total = :skipped_total,
       last_error = :last_error,
       changed_at = :changed_at,
       owner = :owner
 WHERE name = :name;

-- name: remove
-- Its messages stay.
DELETE FROM schedule
 WHERE name = :name;

-- name: find
-- Schedules, by whatever is asked for.
SELECT name, words, is_paused, next_at, last_at, last_id, fired_total, skipped_total, last_error,
       created_at, changed_at, owner
  FROM schedule
 {conditions};

-- name: by_name
-- One of them.
WHERE name = :name;

-- name: to_change
-- One of them, to be changed.
WHERE name = :name;

-- name: to_fire
-- One of them, to be fired by whoever comes first.
WHERE name = :name
  AND is_paused = 0
  AND next_at <= :now;

-- name: page
-- All of them, by name.
WHERE name > :after
ORDER BY name
LIMIT :limit;

-- name: of_owner
-- Those that one application has declared.
WHERE owner = :owner
ORDER BY name;

-- name: due
-- Those whose time has come, the longest due first.
SELECT next_at, name
  FROM schedule
 WHERE is_paused = 0
   AND next_at IS NOT NULL
   AND next_at <= :now
   AND (next_at, name) > (CAST(:after_at AS BIGINT), :after_name)
 ORDER BY next_at, name
 LIMIT :limit;

-- name: next
-- When the next one falls due.
SELECT next_at
  FROM schedule
 WHERE is_paused = 0
   AND next_at IS NOT NULL
   AND next_at > :now
 ORDER BY next_at
 LIMIT 1;
