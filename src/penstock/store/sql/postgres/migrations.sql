-- name: lock
-- Two who migrate do so one after the other.
SELECT pg_advisory_xact_lock(1885697139, 0);

-- name: exists
-- Where SQLite keeps a list of tables, PostgreSQL looks for the name along its search path.
SELECT 1
 WHERE to_regclass('migration') IS NOT NULL;
