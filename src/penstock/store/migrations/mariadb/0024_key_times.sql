-- Why: a key can be valid for a limited time, and operators see which keys are still in use.

ALTER TABLE api_key ADD COLUMN IF NOT EXISTS expires_at bigint;

ALTER TABLE api_key ADD COLUMN IF NOT EXISTS last_used_at bigint;
