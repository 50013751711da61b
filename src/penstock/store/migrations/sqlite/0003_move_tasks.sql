-- Why: messages are moved out of a queue in the background, at a limited rate.  A task must survive
-- a restart, and the count of what it has moved is written with the messages that it moves.

CREATE TABLE move_task (
  task_id        TEXT    PRIMARY KEY,
  source_no      INTEGER NOT NULL,
  target_no      INTEGER,
  state          TEXT    NOT NULL
                 CHECK (state IN ('running', 'cancelling', 'completed', 'cancelled', 'failed')),
  max_per_second INTEGER,
  to_move        INTEGER NOT NULL,
  moved          INTEGER NOT NULL,
  before_no      INTEGER NOT NULL,
  credit         INTEGER NOT NULL,
  paced_at       INTEGER NOT NULL,
  started_at     INTEGER NOT NULL,
  ended_at       INTEGER,
  reason         TEXT
) WITHOUT ROWID;

-- One at a time out of each queue.
CREATE UNIQUE INDEX move_task_active ON move_task (source_no)
 WHERE state IN ('running', 'cancelling');

CREATE INDEX move_task_by_source ON move_task (source_no, before_no);
