-- name: add
-- A new schedule; returns no row if the name is taken.
INSERT INTO schedule (
  name, words, is_paused, next_at, last_at, last_id, fired_total, skipped_total, last_error,
  created_at, changed_at, owner)
VALUES (
  :name, :words, :is_paused, :next_at, :last_at, :last_id, :fired_total, :skipped_total,
  :last_error, :created_at, :changed_at, :owner)
    ON CONFLICT DO NOTHING
RETURNING name;

-- name: save
-- All columns that may change.
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
-- Schedules, by one of the conditions below.
SELECT name, words, is_paused, next_at, last_at, last_id, fired_total, skipped_total, last_error,
       created_at, changed_at, owner
  FROM schedule
 {conditions};

-- name: by_name
-- One schedule.
WHERE name = :name;

-- name: lock
-- One schedule, to be changed.
WHERE name = :name;

-- name: lock_due
-- One schedule, to be fired by the first node that tries.
WHERE name = :name
  AND is_paused = 0
  AND next_at <= :now;

-- name: page
-- All schedules, by name.
WHERE name > :after
ORDER BY name
LIMIT :limit;

-- name: of_owner
-- Schedules that one application has declared.
WHERE owner = :owner
ORDER BY name;

-- name: due
-- Schedules that are due, longest due first.
SELECT next_at, name
  FROM schedule
 WHERE is_paused = 0
   AND next_at IS NOT NULL
   AND next_at <= :now
   AND (next_at, name) > (CAST(:after_at AS BIGINT), :after_name)
 ORDER BY next_at, name
 LIMIT :limit;

-- name: next
-- When the next schedule falls due.
SELECT next_at
  FROM schedule
 WHERE is_paused = 0
   AND next_at IS NOT NULL
   AND next_at > :now
 ORDER BY next_at
 LIMIT 1;
