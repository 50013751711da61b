-- name: promises
-- The settings of the server. Not `setting`, which shows what our own transaction has set.
SELECT name, reset_val
  FROM pg_settings
 WHERE name IN ('server_version_num', 'fsync', 'full_page_writes', 'data_sync_retry',
                'synchronous_commit');

-- name: is_standby
-- Whether this server is a standby.
SELECT CAST(pg_is_in_recovery() AS integer);

-- name: sees_all_sessions
-- Whether the activity of other users' sessions is visible.
SELECT CAST(pg_has_role(session_user, 'pg_read_all_stats', 'USAGE') AS integer);

-- name: table_sizes
-- As in common/.
SELECT CAST(relname AS text), pg_total_relation_size(oid)
  FROM pg_class
 WHERE relkind = 'r'
   AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('message'));

-- name: free_space
-- Nothing to find: files of tables that were dropped are gone.

-- name: read_everything
-- Whole tables are read faster without an index.
SELECT set_config('enable_seqscan', 'on', true);
