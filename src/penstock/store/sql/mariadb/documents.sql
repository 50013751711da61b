-- name: lock
-- As in common/, but locked: a transaction that changes it finishes first.
SELECT name, text, version, changed_at
  FROM document
 WHERE name = :name
   FOR UPDATE;

-- name: remove
-- As in common/: the first statement returns what the second one writes.
SELECT version + 1, name AS found_name
  FROM document
 WHERE name = :name
   AND text IS NOT NULL
   FOR UPDATE;
UPDATE document
   SET text = NULL,
       version = version + 1,
       changed_at = :now
 WHERE name IN ({found:found_name});
