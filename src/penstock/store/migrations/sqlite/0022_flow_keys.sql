-- Why: a flow that is created twice with the same dedup key is one flow.

CREATE TABLE flow_key (
  name        TEXT NOT NULL,
  dedup_key   TEXT NOT NULL,
  flow_no     INTEGER NOT NULL,
  taken_until INTEGER NOT NULL,
  PRIMARY KEY (name, dedup_key)
) WITHOUT ROWID;

CREATE INDEX flow_key_by_flow ON flow_key (flow_no);
