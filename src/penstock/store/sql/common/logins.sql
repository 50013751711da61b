-- name: add
-- A login of the console; only the hash of its token is stored.
INSERT INTO login (token_hash, key_id, until_at)
VALUES (:token_hash, :key_id, :until_at);

-- name: find
-- The login with this token.
SELECT key_id, until_at
  FROM login
 WHERE token_hash = :token_hash;

-- name: remove
-- Log out.
DELETE FROM login
 WHERE token_hash = :token_hash;

-- name: prune
-- Delete expired logins.
DELETE FROM login
 WHERE until_at <= :now;
