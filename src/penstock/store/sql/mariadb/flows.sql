-- name: lock
-- As in common/, but locked, always in the same order.
SELECT {flow_columns}
  FROM flow
 WHERE flow_no IN {list:flow_nos}
 ORDER BY flow_no
   FOR UPDATE;

-- name: try_lock
-- As in common/, but locked; flows that other transactions have locked are left out.
SELECT {flow_columns}
  FROM flow
 WHERE flow_no IN {list:flow_nos}
 ORDER BY flow_no
   FOR UPDATE SKIP LOCKED;

-- name: cancel_blocked
-- As in common/: the first statement returns what the second one changes.
SELECT id, message_no AS found_no
  FROM flow_member FORCE INDEX (flow_member_by_state)
 WHERE flow_no = :flow_no
   AND state = 'blocked'
   AND role = 'member'
   FOR UPDATE;
UPDATE flow_member
   SET state = 'cancelled',
       reason = :reason,
       ended_at = :now
 WHERE message_no IN ({found:found_no});

-- name: mark_edges
-- As in common/: the first statement returns what the second one changes.
SELECT child_no, runs_on, parent_no AS found_no
  FROM flow_edge FORCE INDEX (PRIMARY)
 WHERE parent_no IN {list:parent_nos}
   AND outcome IS NULL
   FOR UPDATE;
UPDATE flow_edge
   SET outcome = :outcome
 WHERE parent_no IN ({found:found_no})
   AND outcome IS NULL;
