-- name: read
-- The time that all nodes use.
SELECT CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS signed);

-- name: set_back_steps
-- As in common/, with MariaDB's division of integers.
UPDATE step
   SET at = at - :shift_ms,
       day = (at - :shift_ms) DIV :day_ms
 WHERE at > :since;
