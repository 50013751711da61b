-- name: lock
-- Only one process at a time migrates.
SELECT pg_advisory_xact_lock(1885697139, 0);

-- name: exists
-- SQLite has a list of tables; PostgreSQL looks the name up along its search path.
SELECT 1
 WHERE to_regclass('migration') IS NOT NULL;
