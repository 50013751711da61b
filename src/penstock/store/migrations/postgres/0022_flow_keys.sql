-- Why: a flow that is created twice with the same dedup key is one flow.

CREATE TABLE flow_key (
  name        text COLLATE "C" NOT NULL,
  dedup_key   text COLLATE "C" NOT NULL,
  flow_no     bigint NOT NULL,
  taken_until bigint NOT NULL,
  PRIMARY KEY (name, dedup_key)
);

CREATE INDEX flow_key_by_flow ON flow_key (flow_no);
