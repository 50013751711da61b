-- name: guard
-- Removals of queues wait for transactions that have read this row, and hold off new ones.
SELECT slot
  FROM lock_slot
 WHERE purpose = 0
   AND slot = 0
  LOCK IN SHARE MODE;

-- name: back_off
-- Pause briefly, without locks.
SELECT SLEEP(:seconds);

-- name: process
-- A number that no other connection has at the same time.
SELECT CONNECTION_ID();

-- name: facts
-- The settings that durability depends on.
SELECT 'version', VERSION()
 UNION ALL
SELECT 'innodb_flush_log_at_trx_commit', @@innodb_flush_log_at_trx_commit
 UNION ALL
SELECT 'innodb_doublewrite', @@innodb_doublewrite
 UNION ALL
SELECT 'innodb_checksum_algorithm', @@innodb_checksum_algorithm
 UNION ALL
SELECT 'log_bin', @@log_bin
 UNION ALL
SELECT 'sync_binlog', @@sync_binlog
 UNION ALL
SELECT 'read_only', @@read_only;
