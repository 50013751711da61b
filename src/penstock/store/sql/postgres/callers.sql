-- Inside a transaction that is not ours: what is set is set back, and what was locked stays so until
-- its end, however long that takes.

-- name: savepoint
-- From here on all is ours to take back.
SAVEPOINT penstock;

-- name: release
-- What we did is part of the caller's transaction.
RELEASE SAVEPOINT penstock;

-- name: roll_back
-- What we did is undone, with its locks and settings; what the caller did before stands.
ROLLBACK TO SAVEPOINT penstock;

-- name: enter
-- How the caller has set things, and then as we need them; see session.sql.  Only our own schema is
-- looked into, because the caller may well have tables of the same names.
SELECT current_setting('search_path'),
       current_setting('enable_seqscan'),
       current_setting('jit'),
       current_setting('transaction_isolation'),
       current_database(),
       set_config('search_path', :search_path, true),
       set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true);

-- name: leave
-- As it was.
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
-- Whose tables these are, and a row of counters that nobody else holds: not those of the nodes, which
-- come before these, and not that of another caller, whose transaction may be open for long.
SELECT (SELECT value FROM meta WHERE name = :name),
       (SELECT s.stripe
          FROM generate_series(CAST(:first AS integer), CAST(:last AS integer)) AS s (stripe)
         WHERE pg_try_advisory_xact_lock(1885697150, s.stripe)
         LIMIT 1);
