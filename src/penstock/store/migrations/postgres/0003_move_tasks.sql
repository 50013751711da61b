-- Why: messages are moved out of a queue in the background, at a limited rate.  A task must survive
-- a restart, and the count of what it has moved is written with the messages that it moves.

CREATE TABLE move_task (
  task_id        text    COLLATE "C" PRIMARY KEY,
  source_no      bigint  NOT NULL,
  target_no      bigint,
  state          text    COLLATE "C" NOT NULL
                 CHECK (state IN ('running', 'cancelling', 'completed', 'cancelled', 'failed')),
  max_per_second integer,
  to_move        bigint  NOT NULL,
  moved          bigint  NOT NULL,
  before_no      bigint  NOT NULL,
  credit         bigint  NOT NULL,
  paced_at       bigint  NOT NULL,
  started_at     bigint  NOT NULL,
  ended_at       bigint,
  reason         text
);

-- One at a time out of each queue.
CREATE UNIQUE INDEX move_task_active ON move_task (source_no)
 WHERE state IN ('running', 'cancelling');

CREATE INDEX move_task_by_source ON move_task (source_no, before_no);
