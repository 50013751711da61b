-- name: begin
-- Whatever the server's default is, each statement sees what was committed before it started.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: begin_read_only
-- All queries see the same snapshot.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: set
-- For this transaction only, or for the whole connection. Plans must not depend on the number of
-- rows at planning time: a queue may be empty at one moment and full at the next.
SELECT set_config('synchronous_commit', :synchronous_commit, w.is_local),
       set_config('statement_timeout', :timeout_ms, w.is_local),
       set_config('lock_timeout', :lock_ms, w.is_local),
       set_config('idle_in_transaction_session_timeout', :idle_ms, w.is_local),
       set_config('plan_cache_mode', 'force_generic_plan', w.is_local),
       set_config('enable_seqscan', 'off', w.is_local),
       set_config('jit', 'off', w.is_local)
  FROM (SELECT CAST(:is_local AS boolean) AS is_local) AS w;

-- name: set_unsynced
-- For this transaction only: its commit does not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true);

-- name: back_off
-- Pause briefly, without locks.
SELECT pg_sleep(CAST(:seconds AS double precision));

-- name: set_patience
-- The following statements may take long.
SELECT set_config('statement_timeout', :timeout_ms, true),
       set_config('lock_timeout', :timeout_ms, true),
       set_config('idle_in_transaction_session_timeout', :idle_ms, true);

-- name: facts
-- The settings that durability depends on.
SELECT name, setting
  FROM pg_settings
 WHERE name IN ('server_version_num', 'fsync', 'full_page_writes', 'data_sync_retry',
                'server_encoding');

-- name: process
-- A number that no other connection has at the same time, and one that no connection had before.
SELECT pg_backend_pid(), nextval('message_no');
