-- name: take
-- As in common/: the first statement makes sure that there is a row to lock.
INSERT INTO duty (name, until_at, holder, ticks)
VALUES (:name, 0, '', -1)
    ON CONFLICT DO NOTHING;
SELECT ticks + 1, name AS found_name
  FROM duty
 WHERE name = :name
   AND (until_at <= :now OR until_at > :until_at)
   FOR UPDATE;
UPDATE duty
   SET until_at = :until_at,
       holder = :holder,
       ticks = ticks + 1
 WHERE name IN ({found:found_name});

-- name: lead
-- As in common/, in the same way.
INSERT INTO duty (name, until_at, holder, ticks)
VALUES (:name, 0, '', -1)
    ON CONFLICT DO NOTHING;
SELECT ticks + 1, name AS found_name
  FROM duty
 WHERE name = :name
   AND (holder = :holder OR until_at <= :now OR until_at > :absurd_at)
   FOR UPDATE;
UPDATE duty
   SET until_at = :until_at,
       holder = :holder,
       ticks = ticks + 1
 WHERE name IN ({found:found_name});
