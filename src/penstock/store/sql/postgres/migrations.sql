-- name: lock
-- Processes that migrate do so one after the other.
SELECT pg_advisory_xact_lock(1885697139, 0);

-- name: exists
-- SQLite has a list of tables; PostgreSQL looks the name up along its search path.
SELECT 1
 WHERE to_regclass('migration') IS NOT NULL;
