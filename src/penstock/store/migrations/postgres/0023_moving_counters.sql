-- Why: connections continue in new counter rows from time to time, because an old transaction keeps
-- the dead versions of a row from being removed, and every change would read all of them.  The rows
-- are numbered by time.

ALTER TABLE counter ALTER COLUMN stripe TYPE bigint;
