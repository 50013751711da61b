-- Why: limits and fair share.  Of a group only so many messages are let through (gate 1, the others
-- of it 2); in a fair queue a message has a turn, which goes before its number; rates are kept in
-- buckets.

ALTER TABLE message ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;

ALTER TABLE message ADD COLUMN gate INTEGER NOT NULL DEFAULT 0 CHECK (gate IN (0, 1, 2));

DROP INDEX message_to_claim;

CREATE INDEX message_to_claim ON message (queue_no, is_blocked, priority, turn, order_no)
 WHERE state = 'ready';

DROP INDEX message_of_kind;

CREATE INDEX message_of_kind ON message (queue_no, kind, is_blocked, priority, turn, order_no)
 WHERE state = 'ready' AND kind IS NOT NULL;

-- Both hold only messages of groups that are limited.
CREATE INDEX message_let_through ON message (queue_no, group_key, state) WHERE gate = 1;

CREATE INDEX message_held_back ON message (queue_no, group_key, priority, turn, order_no)
 WHERE gate = 2 AND state = 'ready';

-- Of a whole queue (the group has no name then), or of one of its groups.
CREATE TABLE pace (
  queue_no  INTEGER NOT NULL,
  group_key TEXT    NOT NULL,
  credit    INTEGER NOT NULL,
  paced_at  INTEGER NOT NULL,
  full_at   INTEGER NOT NULL,
  PRIMARY KEY (queue_no, group_key)
) WITHOUT ROWID;

CREATE INDEX pace_by_end ON pace (full_at);

-- How far each line of a fair queue is: of every priority there is one.
CREATE TABLE fair_line (
  queue_no  INTEGER NOT NULL,
  priority  INTEGER NOT NULL,
  passed_no INTEGER NOT NULL,
  PRIMARY KEY (queue_no, priority)
) WITHOUT ROWID;

-- Where the last message of a group has left off.
CREATE TABLE fair_share (
  queue_no  INTEGER NOT NULL,
  priority  INTEGER NOT NULL,
  group_key TEXT    NOT NULL,
  finish_no INTEGER NOT NULL,
  PRIMARY KEY (queue_no, priority, group_key)
) WITHOUT ROWID;

CREATE INDEX fair_share_by_finish ON fair_share (queue_no, priority, finish_no);
