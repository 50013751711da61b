-- Inside a caller's transaction: settings are restored, and locks are kept until its end, however
-- long that takes.

-- name: savepoint
-- From here on everything can be undone.
SAVEPOINT penstock;

-- name: release
-- Our changes become part of the caller's transaction.
RELEASE SAVEPOINT penstock;

-- name: roll_back
-- Undo our changes, with their locks and settings; the caller's earlier changes stay.
ROLLBACK TO SAVEPOINT penstock;

-- name: enter
-- Returns the caller's settings, then sets those that we need; see session.sql. The search path has
-- only our own schema, because the caller may have tables with the same names.
SELECT current_setting('search_path'),
       current_setting('enable_seqscan'),
       current_setting('jit'),
       current_setting('transaction_isolation'),
       current_database(),
       set_config('search_path', :search_path, true),
       set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true);

-- name: leave
-- Restore the caller's settings.
SELECT set_config('search_path', :search_path, true),
       set_config('enable_seqscan', :enable_seqscan, true),
       set_config('jit', :jit, true);

-- name: schema
-- Where our tables are: the database, and the schema as it is written in a search path.
SELECT current_database(), quote_ident(n.nspname)
  FROM pg_class AS c
  JOIN pg_namespace AS n
    ON n.oid = c.relnamespace
 WHERE c.oid = to_regclass('message');

-- name: stripe
-- The secret of these tables, which identifies the store, and a counter row that no other
-- transaction has locked: neither one of the nodes' rows, which come first, nor the row of another
-- caller, whose transaction may stay open for long.
SELECT (SELECT value FROM meta WHERE name = :name),
       (SELECT s.stripe
          FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS s (stripe)
         WHERE pg_try_advisory_xact_lock(1885697150, s.stripe)
         LIMIT 1);
