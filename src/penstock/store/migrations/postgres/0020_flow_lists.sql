-- Why: operators list the flows in one state, and those with failed members, however many others there
-- are; and find the flows that the handler of a message created.

ALTER TABLE flow
  ADD COLUMN created_by text COLLATE "C";

CREATE INDEX flow_by_outcome ON flow (outcome, created_at, flow_no);

CREATE INDEX flow_failing ON flow (created_at, flow_no)
 WHERE failed > 0 AND is_cancelled = 0;

CREATE INDEX flow_by_creator ON flow (created_by)
 WHERE created_by IS NOT NULL;
