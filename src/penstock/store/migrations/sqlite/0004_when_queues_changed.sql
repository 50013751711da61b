-- Why: faces tell when a queue was changed last.

ALTER TABLE queue ADD COLUMN changed_at INTEGER NOT NULL DEFAULT 0;

UPDATE queue
   SET changed_at = created_at;
