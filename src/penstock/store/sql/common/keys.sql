-- name: add
-- A new API key; only the hash of its secret is stored.
INSERT INTO api_key (key_id, name, secret_hash, roles, queues, created_at, signed_with, expires_at)
VALUES (:key_id, :name, :secret_hash, :roles, :queues, :created_at, :signed_with, :expires_at);

-- name: all
-- Every key, revoked ones included.
SELECT key_id, name, secret_hash, roles, queues, created_at, revoked_at, signed_with,
       expires_at, last_used_at
  FROM api_key
 ORDER BY created_at, key_id;

-- name: revoke
-- Revoke a key.
UPDATE api_key
   SET revoked_at = :now
 WHERE key_id = :key_id
   AND revoked_at IS NULL;

-- name: use
-- Note that a key was used; nodes do so at different times, and the latest counts.
UPDATE api_key
   SET last_used_at = :now
 WHERE key_id = :key_id
   AND (last_used_at IS NULL OR last_used_at < :now);
