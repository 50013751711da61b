-- Why: a job that is run again must not repeat what it has recorded, and may wait for a signal
-- without holding a lease.  Endings leave these rows alone; steps go with their day, unless their
-- message is still there.

CREATE TABLE step (
  message_no INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  step_no    INTEGER NOT NULL CHECK (step_no > 0),
  outcome    TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  day        INTEGER NOT NULL,
  PRIMARY KEY (message_no, name)
) WITHOUT ROWID;

CREATE INDEX step_by_day ON step (day);

CREATE TABLE signal (
  name     TEXT    NOT NULL PRIMARY KEY,
  body     TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  until_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX signal_by_end ON signal (until_at);

CREATE TABLE signal_waiter (
  name       TEXT    NOT NULL,
  message_no INTEGER NOT NULL,
  step       TEXT    NOT NULL,
  at         INTEGER NOT NULL,
  until_at   INTEGER,
  lease_no   INTEGER,
  PRIMARY KEY (name, message_no)
) WITHOUT ROWID;

CREATE INDEX signal_waiter_by_message ON signal_waiter (message_no);
