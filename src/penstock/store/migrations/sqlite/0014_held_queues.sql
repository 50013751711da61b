-- Why: held queues are counted on every look at circuits and unheld by hand, circuit by circuit or
-- one by one; without an index each of these would read all queues, or the whole line.

CREATE INDEX queue_held ON queue (held_by, queue_no)
 WHERE held_by IS NOT NULL;

CREATE INDEX circuit_hold_by_queue ON circuit_hold (queue_no);

CREATE INDEX unhold_line_by_queue ON unhold_line (queue_no);
