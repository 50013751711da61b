-- name: forget
-- As in common/; each message is looked up, because a join would be planned for the number of rows
-- at some moment.
DELETE FROM step
 WHERE day <= :day
   AND NOT EXISTS (SELECT 1
                     FROM message AS m
                    WHERE m.message_no = step.message_no
                    LIMIT 1 OFFSET 0);
