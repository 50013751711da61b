-- name: known_live
-- Which of these messages are live.
SELECT id
  FROM message
 WHERE id IN (SELECT value FROM json_each(:ids));

-- name: known_ended
-- Which of these messages ended on a day.
SELECT id
  FROM history_{day}
 WHERE id IN (SELECT value FROM json_each(:ids));

-- name: set_attempts
-- Attempts and errors that a message had when it was archived.
UPDATE message
   SET attempts = :attempts,
       failures = :failures,
       crashes = :crashes,
       lease_no = :lease_no,
       first_leased_at = :first_leased_at,
       last_error = :last_error
 WHERE id = :id;
