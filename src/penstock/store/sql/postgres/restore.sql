-- name: known_live
-- As in common/.  An array, because its members are looked up in the index one by one.
SELECT id
  FROM message
 WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))));

-- name: known_ended
-- The same as above.
SELECT id
  FROM history_{day}
 WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))));
