-- name: add
-- A new flow without members.
INSERT INTO flow (
  id, name, queues, created_at, is_open, is_cancelled, total, remaining, done, failed, skipped,
  created_by)
VALUES (:id, :name, :queues, :now, :is_open, 0, 0, 0, 0, 0, 0, :created_by)
RETURNING {flow_columns};

-- name: lock_key
-- The flow that has a dedup key, or 0; where several nodes write, they take turns from here on.
INSERT INTO flow_key (name, dedup_key, flow_no, taken_until)
VALUES (:name, :dedup_key, 0, 0)
ON CONFLICT (name, dedup_key) DO UPDATE SET flow_no = flow_key.flow_no
RETURNING flow_no, taken_until;

-- name: take_key
-- A new flow has the key now.
UPDATE flow_key
   SET flow_no = :flow_no,
       taken_until = :taken_until
 WHERE name = :name
   AND dedup_key = :dedup_key;

-- name: by_no
-- One flow by its number.
SELECT {flow_columns}
  FROM flow
 WHERE flow_no = :flow_no;

-- name: lock
-- Flows, to change them: one row is the lock of a flow with all its members and edges.
SELECT {flow_columns}
  FROM flow
 WHERE flow_no IN {list:flow_nos};

-- name: try_lock
-- The same without waiting: flows that other transactions have locked are left out.
SELECT {flow_columns}
  FROM flow
 WHERE flow_no IN {list:flow_nos};

-- name: no_of
-- The number of a flow.
SELECT flow_no
  FROM flow
 WHERE id = :id;

-- name: by_id
-- One flow.
SELECT {flow_columns}
  FROM flow
 WHERE id = :id;

-- name: id_of_message
-- The flow that a message is a member of.
SELECT f.id
  FROM flow_member AS m
  JOIN flow AS f
    ON f.flow_no = m.flow_no
 WHERE m.id = :id;

-- name: page
-- Flows, newest first. The caller adds the conditions that apply.
SELECT {flow_columns}
  FROM flow
 WHERE (created_at, flow_no) < (CAST(:before_at AS BIGINT), CAST(:before_no AS BIGINT))
   {conditions}
 ORDER BY created_at DESC, flow_no DESC
 LIMIT :limit;

-- name: where_name
-- A condition of page.
AND name = :name

-- name: where_running
-- A condition of page.
AND outcome IS NULL

-- name: where_failing
-- A condition of page: it has an index of its own.
AND failed > 0
   AND is_cancelled = 0

-- name: where_created_by
-- A condition of page.
AND created_by = :created_by

-- name: where_outcome
-- A condition of page.
AND outcome = :outcome

-- name: save
-- The columns that endings, additions and operators change.
UPDATE flow
   SET queues = :queues,
       ended_at = :ended_at,
       is_open = :is_open,
       is_cancelled = :is_cancelled,
       total = :total,
       remaining = :remaining,
       done = :done,
       failed = :failed,
       skipped = :skipped,
       outcome = :outcome
 WHERE flow_no = :flow_no;

-- name: add_members
-- New members.
INSERT INTO flow_member (
  message_no, flow_no, id, name, kind, queue_no, role, state, waits_for, handles, failures, reason,
  ended_at, is_wanted, draft)
VALUES (
  :message_no, :flow_no, :id, :name, :kind, :queue_no, :role, :state, :waits_for, :handles,
  :failures, :reason, :ended_at, :is_wanted, :draft);

-- name: add_edges
-- New edges; those of parents that have ended already have an outcome.
INSERT INTO flow_edge (parent_no, child_no, runs_on, outcome)
VALUES (:parent_no, :child_no, :runs_on, :outcome);

-- name: members
-- Members by number.
SELECT {member_columns}
  FROM flow_member
 WHERE message_no IN {list:message_nos};

-- name: member_of_id
-- The member that has this message.
SELECT {member_columns}
  FROM flow_member
 WHERE id = :id;

-- name: callbacks
-- The callbacks of flows.
SELECT {member_columns}
  FROM flow_member
 WHERE flow_no IN {list:flow_nos}
   AND role <> 'member';

-- name: page_of_members
-- Members in the order they were added.
SELECT {member_columns}
  FROM flow_member
 WHERE flow_no = :flow_no
   AND message_no > :after_no
 ORDER BY message_no
 LIMIT :limit;

-- name: page_in_state
-- The same, in one state.
SELECT {member_columns}
  FROM flow_member
 WHERE flow_no = :flow_no
   AND state = :state
   AND message_no > :after_no
 ORDER BY message_no
 LIMIT :limit;

-- name: named
-- Members of a flow by name.
SELECT name, message_no
  FROM flow_member
 WHERE flow_no = :flow_no
   AND name IN (SELECT value FROM json_each(:names));

-- name: with_ids
-- Members of a flow by id.
SELECT id, message_no
  FROM flow_member
 WHERE flow_no = :flow_no
   AND id IN (SELECT value FROM json_each(:names));

-- name: end_members
-- Members that have all ended in the same way.
UPDATE flow_member
   SET state = :state,
       reason = :reason,
       ended_at = :now
 WHERE message_no IN {list:message_nos};

-- name: save_member
-- The columns that change while a member is blocked, or when it is blocked again.
UPDATE flow_member
   SET state = :state,
       waits_for = :waits_for,
       handles = :handles,
       failures = :failures,
       reason = :reason,
       ended_at = :ended_at
 WHERE message_no = :message_no;

-- name: released
-- Members that are messages now: their drafts are not needed any more.
UPDATE flow_member
   SET state = 'released',
       reason = NULL,
       ended_at = NULL,
       waits_for = 0,
       draft = NULL
 WHERE message_no IN {list:message_nos};

-- name: cancel_blocked
-- All members of a flow that have not been released.
UPDATE flow_member
   SET state = 'cancelled',
       reason = :reason,
       ended_at = :now
 WHERE flow_no = :flow_no
   AND state = 'blocked'
   AND role = 'member'
RETURNING id;

-- name: mark_edges
-- The edges from parents that have ended; those marked before are left alone.
UPDATE flow_edge
   SET outcome = :outcome
 WHERE parent_no IN {list:parent_nos}
   AND outcome IS NULL
RETURNING child_no, runs_on;

-- name: marked_edges
-- Edges from parents that have come back, to members that were never released.
SELECT e.parent_no, e.child_no
  FROM flow_edge AS e
 WHERE e.parent_no IN {list:parent_nos}
   AND e.outcome IS NOT NULL
   AND (SELECT m.draft
          FROM flow_member AS m
         WHERE m.message_no = e.child_no) IS NOT NULL;

-- name: unmark_edge
-- Its parent has come back.
UPDATE flow_edge
   SET outcome = NULL
 WHERE parent_no = :parent_no
   AND child_no = :child_no;

-- name: edges_of
-- The edges to members, counted: a member may have thousands.
SELECT child_no, runs_on, outcome, count(*)
  FROM flow_edge
 WHERE child_no IN {list:child_nos}
 GROUP BY child_no, runs_on, outcome;

-- name: parents_of
-- The parents of members, for a page of them.
SELECT e.child_no, p.id, e.runs_on
  FROM flow_edge AS e
  JOIN flow_member AS p
    ON p.message_no = e.parent_no
 WHERE e.child_no IN {list:child_nos}
 ORDER BY e.child_no, e.parent_no;

-- name: edges_to
-- The edges to members, for a graph of them.
SELECT child_no, parent_no, runs_on
  FROM flow_edge
 WHERE child_no IN {list:child_nos}
 ORDER BY child_no, parent_no;

-- name: live_runs
-- The messages of members that are in a queue; dead ones have ended for their flow.
SELECT message_no, CASE WHEN state <> 'dead' AND dead_from IS NULL THEN state END, sent_at,
       CASE WHEN state = 'waiting' THEN due_at END, first_leased_at, leased_at, attempts
  FROM message
 WHERE message_no IN {list:message_nos};

-- name: ended_runs
-- The endings of members on one day, the last of each last.
SELECT message_no, NULL, sent_at, NULL, first_leased_at, leased_at, attempts
  FROM history_{day}
 WHERE id IN (SELECT value FROM json_each(:ids))
 ORDER BY history_no;

-- name: of_creators
-- The flows that the handlers of messages created.
SELECT created_by, id
  FROM flow
 WHERE created_by IN (SELECT value FROM json_each(:ids))
 ORDER BY created_at, flow_no;

-- name: want_results
-- Keep the results of these members: others take them as inputs.
UPDATE flow_member
   SET is_wanted = 1
 WHERE message_no IN {list:message_nos};

-- name: wanted
-- Of these members the ones whose results are kept.
SELECT message_no
  FROM flow_member
 WHERE message_no IN {list:message_nos}
   AND is_wanted = 1;

-- name: keep_result
-- A result that other members take as input.
UPDATE flow_member
   SET result = :result
 WHERE message_no = :message_no;

-- name: ended_results
-- The results of members that had ended before others wanted them, from the history of one day.
SELECT message_no, result
  FROM history_{day}
 WHERE id IN (SELECT value FROM json_each(:ids))
   AND outcome = 'done'
   AND result IS NOT NULL;

-- name: results
-- Kept results.
SELECT message_no, result
  FROM flow_member
 WHERE message_no IN {list:message_nos};

-- name: drafts
-- What members will be when they are released.
SELECT message_no, draft
  FROM flow_member
 WHERE message_no IN {list:message_nos}
   AND draft IS NOT NULL;

-- name: add_messages
-- Members as messages; their numbers were taken when they were planned, their places now.
INSERT INTO message ({columns})
VALUES ({column_params});

-- name: old
-- Flows that ended before an instant and have no dead member, which could be redriven.
SELECT flow_no
  FROM flow
 WHERE ended_at IS NOT NULL
   AND ended_at < :before_at
   AND NOT EXISTS (SELECT 1
                     FROM flow_member AS m
                    WHERE m.flow_no = flow.flow_no
                      AND m.state = 'dead')
 ORDER BY ended_at
 LIMIT :limit;

-- name: old_members
-- Members to forget, some at a time.
SELECT message_no
  FROM flow_member
 WHERE flow_no = :flow_no
 ORDER BY message_no
 LIMIT :limit;

-- name: forget_edges
-- The edges to members that are forgotten.
DELETE FROM flow_edge
 WHERE child_no IN {list:message_nos};

-- name: forget_members
-- Members of an old flow.
DELETE FROM flow_member
 WHERE message_no IN {list:message_nos};

-- name: forget_key
-- The dedup key of a flow that is forgotten.
DELETE FROM flow_key
 WHERE flow_no = :flow_no;

-- name: forget
-- A flow without members.
DELETE FROM flow
 WHERE flow_no = :flow_no;

-- name: lost_members
-- Flows with members that should be in a queue and are not, as after damage to the store.
SELECT f.id, f.name, count(*)
  FROM flow_member AS m
  JOIN flow AS f
    ON f.flow_no = m.flow_no
 WHERE m.state IN ('released', 'dead')
   AND NOT EXISTS (SELECT 1 FROM message AS x WHERE x.message_no = m.message_no)
 GROUP BY f.id, f.name
 ORDER BY f.id;

-- name: miscounted
-- Flows whose numbers do not agree with their members.
SELECT f.id
  FROM flow AS f
  LEFT JOIN (SELECT flow_no,
                    sum(CASE WHEN state IN ('blocked', 'released') THEN 1 ELSE 0 END) AS remaining,
                    count(*) AS total
               FROM flow_member
              WHERE role = 'member'
              GROUP BY flow_no) AS m
    ON m.flow_no = f.flow_no
 WHERE f.remaining <> coalesce(m.remaining, 0)
    OR f.total <> coalesce(m.total, 0)
 ORDER BY f.id;
