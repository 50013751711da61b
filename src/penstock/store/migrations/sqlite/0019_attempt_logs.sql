-- Why: what a handler logs is kept with the attempt.  A part has some lines; its worker numbers the
-- parts of an attempt, so that a repeated request adds nothing.  Days that are there already get the
-- table here, later ones when they are created.

-- For each day:
CREATE TABLE attempt_log_{day} (
  message_no INTEGER NOT NULL,
  lease_no   INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  lines      TEXT    NOT NULL,
  PRIMARY KEY (message_no, lease_no, seq)
) WITHOUT ROWID;
