-- Why: recurring work that an application no longer declares must stop, and nobody else's may; so
-- each schedule names the application that declared it.  NULL: made by hand, or before this.

ALTER TABLE schedule ADD COLUMN owner TEXT;

CREATE INDEX schedule_owner ON schedule (owner, name)
 WHERE owner IS NOT NULL;
