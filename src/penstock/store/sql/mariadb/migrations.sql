-- name: lock
-- Only one process at a time migrates. The lock ends with the connection, as each statement that
-- changes the schema commits the transaction.
SELECT GET_LOCK(CONCAT('penstock_migrate_', LEFT(MD5(DATABASE()), 16)), 600);

-- name: exists
-- Whether the list exists.
SELECT 1
  FROM information_schema.tables
 WHERE table_schema = DATABASE()
   AND table_name = 'migration';

-- name: create
-- The list of applied migrations, with MariaDB's types.
CREATE TABLE IF NOT EXISTS migration (
  number     integer PRIMARY KEY,
  name       varchar(512) NOT NULL,
  checksum   varchar(512) NOT NULL,
  applied_at bigint NOT NULL
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;
