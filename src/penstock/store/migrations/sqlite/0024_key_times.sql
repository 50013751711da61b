-- Why: a key can be valid for a limited time, and operators see which keys are still in use.

ALTER TABLE api_key ADD COLUMN expires_at INTEGER;

ALTER TABLE api_key ADD COLUMN last_used_at INTEGER;
