-- name: lock
-- As in common/, but locked: a transaction that changes it finishes first.
SELECT name, text, version, changed_at
  FROM document
 WHERE name = :name
   FOR UPDATE;
