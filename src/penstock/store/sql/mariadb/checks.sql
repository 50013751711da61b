-- name: sees_all_transactions
-- Whether the transactions of other sessions are visible: without more rights, a user sees only its
-- own privileges here.
SELECT count(*)
  FROM information_schema.user_privileges
 WHERE privilege_type = 'PROCESS';

-- name: table_sizes
-- As in common/.
SELECT table_name, data_length + index_length
  FROM information_schema.tables
 WHERE table_schema = DATABASE()
   AND table_type = 'BASE TABLE';

-- name: free_space
-- Nothing to find: files of tables that were dropped are gone.
