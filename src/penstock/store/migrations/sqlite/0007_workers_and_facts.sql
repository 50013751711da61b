-- Why: workers are registered, and lost ones are noticed.  Facts tell what happened to them, and
-- whatever else is remembered that is not about one message.

CREATE TABLE worker (
  worker_id     TEXT    PRIMARY KEY,
  state         TEXT    NOT NULL CHECK (state IN ('active', 'draining', 'left', 'lost')),
  name          TEXT,
  host          TEXT,
  pid           INTEGER,
  queues        TEXT    NOT NULL,
  kinds         TEXT    NOT NULL,
  slots         INTEGER NOT NULL CHECK (slots > 0),
  labels        TEXT    NOT NULL,
  registered_at INTEGER NOT NULL,
  beat_at       INTEGER NOT NULL,
  alive_until   INTEGER NOT NULL,
  ended_at      INTEGER
) WITHOUT ROWID;

-- Those that are there, few among many that were.
CREATE INDEX worker_present ON worker (worker_id)
 WHERE state IN ('active', 'draining');

-- For the duty that gives back what lost ones hold, and to forget those that have gone.
CREATE INDEX worker_gone ON worker (ended_at)
 WHERE ended_at IS NOT NULL;

CREATE TABLE fact (
  fact_no INTEGER PRIMARY KEY AUTOINCREMENT,
  at      INTEGER NOT NULL,
  kind    TEXT    NOT NULL,
  subject TEXT    NOT NULL,
  data    TEXT    NOT NULL
);

CREATE INDEX fact_by_time ON fact (at, fact_no);

CREATE INDEX fact_by_kind ON fact (kind, at, fact_no);

CREATE INDEX fact_by_subject ON fact (subject, at, fact_no);
