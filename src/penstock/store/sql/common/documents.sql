-- name: find
-- One document, unless it was removed.
SELECT name, text, version, changed_at
  FROM document
 WHERE name = :name
   AND text IS NOT NULL;

-- name: latest
-- The same, or the version of one that was removed.
SELECT text, version
  FROM document
 WHERE name = :name;

-- name: reserve
-- A row for a document that does not exist yet, so that it can be locked.
INSERT INTO document (name, text, version, changed_at)
VALUES (:name, NULL, 0, :now)
    ON CONFLICT DO NOTHING;

-- name: lock
-- One document, to be put or removed; also one that was removed.
SELECT name, text, version, changed_at
  FROM document
 WHERE name = :name;

-- name: put
-- Create or replace.
INSERT INTO document (name, text, version, changed_at)
VALUES (:name, :text, 1, :now)
    ON CONFLICT (name)
    DO UPDATE
   SET text = excluded.text,
       version = document.version + 1,
       changed_at = excluded.changed_at
RETURNING name, text, version, changed_at;

-- name: remove
-- The row stays, so that its version keeps growing.
UPDATE document
   SET text = NULL,
       version = version + 1,
       changed_at = :now
 WHERE name = :name
   AND text IS NOT NULL
RETURNING version;
