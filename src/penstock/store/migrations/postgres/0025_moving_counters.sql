-- Why: connections continue in new counter rows from time to time, because an old transaction keeps
-- the dead versions of a row from being removed, and every change would read all of them.  The
-- numbers of the rows grow.

ALTER TABLE counter ALTER COLUMN stripe TYPE bigint;
