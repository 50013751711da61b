-- name: lease
-- As in common/: the first statement returns the messages as the second one leaves them.
SELECT {leased_columns}
  FROM message FORCE INDEX (PRIMARY)
 WHERE message_no IN {list:message_nos}
   FOR UPDATE;
UPDATE message
   SET {leased}
 WHERE message_no IN ({found:message_no});
