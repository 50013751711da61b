-- name: writers
-- Transactions that write to tables that the archiver reads by number. A number is assigned under
-- such a lock, which is held until the row is visible or rolled back. Includes prepared
-- transactions.
SELECT DISTINCT l.virtualtransaction
  FROM pg_locks AS l
  JOIN pg_class AS c
    ON c.oid = l.relation
 WHERE l.locktype = 'relation'
   AND l.mode = 'RowExclusiveLock'
   AND l.granted
   AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
   AND c.relname ~ '^(history_[0-9]+|attempt_[0-9]+|fact|minute_counter)$'
   AND pg_table_is_visible(c.oid);
