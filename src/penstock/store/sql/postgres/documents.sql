-- name: to_change
-- As in common/, but locked: whoever changes it just now finishes first.
SELECT name, text, version, changed_at
  FROM document
 WHERE name = :name
   FOR UPDATE;
