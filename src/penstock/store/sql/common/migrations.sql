-- name: create
-- The list of applied migrations.
CREATE TABLE IF NOT EXISTS migration (
  number     INTEGER PRIMARY KEY,
  name       TEXT   NOT NULL,
  checksum   TEXT   NOT NULL,
  applied_at BIGINT NOT NULL
);

-- name: lock
-- Nothing to lock: SQLite has one writer.

-- name: exists
-- Whether the list exists.
SELECT 1
  FROM sqlite_master
 WHERE type = 'table'
   AND name = 'migration';

-- name: applied
-- The applied migrations.
SELECT number, checksum
  FROM migration;

-- name: add
-- Record one migration.
INSERT INTO migration (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, :applied_at);

-- name: remove
-- Delete a number, to record its text under another one.
DELETE FROM migration
 WHERE number = :number;
