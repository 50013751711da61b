-- Why: the lake tells how long the steps of a message took, in which attempt, and how long it was
-- suspended.  Steps that were recorded before have no times.

ALTER TABLE step ADD COLUMN kind TEXT NOT NULL DEFAULT 'step'
  CHECK (kind IN ('step', 'sleep', 'wait'));

ALTER TABLE step ADD COLUMN lease_no INTEGER;

ALTER TABLE step ADD COLUMN took_ms INTEGER;
