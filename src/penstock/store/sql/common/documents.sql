-- name: find
-- One of them, unless it was removed.
SELECT name, text, version, changed_at
  FROM document
 WHERE name = :name
   AND text IS NOT NULL;

-- name: latest
-- Also of one that was removed.
SELECT text, version
  FROM document
 WHERE name = :name;

-- name: reserve
-- A row for one that is not there yet, so that it can be locked.
INSERT INTO document (name, text, version, changed_at)
VALUES (:name, NULL, 0, :now)
    ON CONFLICT DO NOTHING;

-- name: to_change
-- The same, to be put or removed; also one that was removed.
SELECT name, text, version, changed_at
  FROM document
 WHERE name = :name;

-- name: put
-- New, or in place of what was there.
INSERT INTO document (name, text, version, changed_at)
VALUES (:name, :text, 1, :now)
    ON CONFLICT (name)
    DO UPDATE
   SET text = excluded.text,
       version = document.version + 1,
       changed_at = excluded.changed_at
RETURNING name, text, version, changed_at;

-- name: remove
-- The row stays, so that its version goes on growing.
UPDATE document
   SET text = NULL,
       version = version + 1,
       changed_at = :now
 WHERE name = :name
   AND text IS NOT NULL
RETURNING version;
