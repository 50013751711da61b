-- Why: a flow that is created twice with the same dedup key is one flow.

CREATE TABLE IF NOT EXISTS flow_key (
  name        varchar(256) NOT NULL,
  dedup_key   varchar(500) NOT NULL,
  flow_no     bigint NOT NULL,
  taken_until bigint NOT NULL,
  PRIMARY KEY (name, dedup_key),
  INDEX flow_key_by_flow (flow_no)
) ENGINE = InnoDB, COLLATE = utf8mb4_nopad_bin;
