-- name: sees_all_transactions
-- Whether the transactions of other sessions are visible: without more rights, a user sees only its
-- own privileges here.
SELECT count(*)
  FROM information_schema.user_privileges
 WHERE privilege_type = 'PROCESS';
