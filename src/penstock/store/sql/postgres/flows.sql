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

-- name: named
-- As in common/, name by name: as a condition on an array, each member of the flow is compared with
-- each name.
SELECT m.name, m.message_no
  FROM json_array_elements_text(CAST(:names AS json)) AS wanted(name)
  JOIN flow_member AS m
    ON m.flow_no = :flow_no
   AND m.name = wanted.name;

-- name: with_ids
-- As in common/, id by id; see named.
SELECT m.id, m.message_no
  FROM json_array_elements_text(CAST(:names AS json)) AS wanted(id)
  JOIN flow_member AS m
    ON m.id = wanted.id
 WHERE m.flow_no = :flow_no;

-- name: ended_results
-- As in common/, with PostgreSQL's JSON.
SELECT message_no, result
  FROM history_{day}
 WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
   AND outcome = 'done'
   AND result IS NOT NULL;

-- name: ended_runs
-- As in common/, with PostgreSQL's JSON.
SELECT message_no, NULL, sent_at, NULL, first_leased_at, leased_at, attempts
  FROM history_{day}
 WHERE id = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
 ORDER BY history_no;

-- name: of_creators
-- As in common/, with PostgreSQL's JSON.
SELECT created_by, id
  FROM flow
 WHERE created_by = ANY (ARRAY(SELECT json_array_elements_text(CAST(:ids AS json))))
 ORDER BY created_at, flow_no;
