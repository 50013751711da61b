-- Why: history, attempts and facts are written out to files, each row once: the store remembers how
-- far that is and which rows the next file holds.  The counters of queues are kept each minute until
-- they are written out, too.

CREATE TABLE archive_mark (
  source     TEXT    NOT NULL,
  day        INTEGER NOT NULL,
  done_no    INTEGER NOT NULL DEFAULT 0,
  planned_no INTEGER NOT NULL DEFAULT 0,
  rows_total INTEGER NOT NULL DEFAULT 0,
  is_closed  INTEGER NOT NULL DEFAULT 0 CHECK (is_closed IN (0, 1)),
  moved_at   INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (source, day),
  CHECK (done_no <= planned_no)
) WITHOUT ROWID;

CREATE TABLE backlog_sample (
  sample_no       INTEGER PRIMARY KEY AUTOINCREMENT,
  at              INTEGER NOT NULL,
  queue_no        INTEGER NOT NULL,
  waiting         INTEGER NOT NULL,
  ready           INTEGER NOT NULL,
  leased          INTEGER NOT NULL,
  dead            INTEGER NOT NULL,
  sent_total      INTEGER NOT NULL,
  done_total      INTEGER NOT NULL,
  dead_total      INTEGER NOT NULL,
  cancelled_total INTEGER NOT NULL,
  failed_total    INTEGER NOT NULL,
  expired_total   INTEGER NOT NULL,
  claimed_total   INTEGER NOT NULL
);

CREATE INDEX backlog_sample_by_queue ON backlog_sample (queue_no, sample_no);

CREATE INDEX backlog_sample_by_time ON backlog_sample (at);
