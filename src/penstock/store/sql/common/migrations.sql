-- name: create
-- Where the applied migrations are noted.
CREATE TABLE IF NOT EXISTS migration (
  number     INTEGER PRIMARY KEY,
  name       TEXT   NOT NULL,
  checksum   TEXT   NOT NULL,
  applied_at BIGINT NOT NULL
);

-- name: lock
-- Nothing to lock: the transaction is the only writer.

-- name: exists
-- Is there such a table?
SELECT 1
  FROM sqlite_master
 WHERE type = 'table'
   AND name = 'migration';

-- name: applied
-- What has been applied.
SELECT number, checksum
  FROM migration;

-- name: add
-- Note one.
INSERT INTO migration (number, name, checksum, applied_at)
VALUES (:number, :name, :checksum, :applied_at);

-- name: remove
-- Forget a number, to note its text under another one.
DELETE FROM migration
 WHERE number = :number;
