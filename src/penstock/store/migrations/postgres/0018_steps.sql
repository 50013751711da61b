-- Why: a job that is run again must not repeat what it has recorded, and may wait for a signal
-- without holding a lease.  Endings leave these rows alone; steps go with their day, unless their
-- message is still there.

CREATE TABLE step (
  message_no bigint  NOT NULL,
  name       text    COLLATE "C" NOT NULL,
  step_no    integer NOT NULL CHECK (step_no > 0),
  outcome    text    NOT NULL,
  at         bigint  NOT NULL,
  day        integer NOT NULL,
  PRIMARY KEY (message_no, name)
);

CREATE INDEX step_by_day ON step (day);

CREATE TABLE signal (
  name     text   COLLATE "C" NOT NULL PRIMARY KEY,
  body     text   NOT NULL,
  at       bigint NOT NULL,
  until_at bigint NOT NULL
);

CREATE INDEX signal_by_end ON signal (until_at);

CREATE TABLE signal_waiter (
  name       text   COLLATE "C" NOT NULL,
  message_no bigint NOT NULL,
  step       text   COLLATE "C" NOT NULL,
  at         bigint NOT NULL,
  until_at   bigint,
  lease_no   bigint,
  PRIMARY KEY (name, message_no)
);

CREATE INDEX signal_waiter_by_message ON signal_waiter (message_no);
