-- name: add
-- A new API key; only the hash of its secret is stored.
INSERT INTO api_key (key_id, name, secret_hash, roles, queues, created_at, signed_with)
VALUES (:key_id, :name, :secret_hash, :roles, :queues, :created_at, :signed_with);

-- name: all
-- Every key, revoked ones included.
SELECT key_id, name, secret_hash, roles, queues, created_at, revoked_at, signed_with
  FROM api_key
 ORDER BY created_at, key_id;

-- name: revoke
-- Revoke a key.
UPDATE api_key
   SET revoked_at = :now
 WHERE key_id = :key_id
   AND revoked_at IS NULL;
