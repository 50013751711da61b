-- Limits per group: which messages are admitted. The rule is in domain/queue/group_limit.py.

-- name: admitted
-- How many messages of each of these groups are admitted, by state.
SELECT g.value ->> 0, g.value ->> 1, m.state, count(*)
  FROM json_each(:groups) AS g
 CROSS JOIN message AS m
 WHERE m.queue_no = g.value ->> 0
   AND m.group_key = g.value ->> 1
   AND m.gate = 1
 GROUP BY 1, 2, 3;

-- name: next_held_back
-- The next messages of a group that are held back.
SELECT message_no
  FROM message
 WHERE queue_no = :queue_no
   AND group_key = :group_key
   AND gate = 2
   AND state = 'ready'
 ORDER BY priority, turn, order_no
 LIMIT :limit;

-- name: admit
-- Admit a message now, or at an instant until which it waits.
UPDATE message
   SET gate = 1,
       is_blocked = 0,
       state = :state,
       due_at = coalesce(:due_at, due_at)
 WHERE message_no = :message_no;

-- name: recall
-- The limits have changed: decide again on messages that wait for an instant.
UPDATE message
   SET state = 'ready',
       due_at = :now
 WHERE queue_no = :queue_no
   AND gate = 1
   AND state = 'waiting';

-- name: hold_back_all
-- All messages with a group, except leased ones.
UPDATE message
   SET gate = CASE state WHEN 'leased' THEN 1 ELSE 2 END,
       is_blocked = CASE state WHEN 'leased' THEN 0 ELSE 1 END
 WHERE queue_no = :queue_no
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased');

-- name: free_all
-- Groups are no longer limited.
UPDATE message
   SET gate = 0,
       is_blocked = 0
 WHERE queue_no = :queue_no
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased');

-- name: groups_held_back
-- Groups with messages to be admitted.
SELECT DISTINCT group_key
  FROM message
 WHERE queue_no = :queue_no
   AND gate = 2
   AND state = 'ready';

-- name: all_groups
-- How many messages of all groups are admitted and held back, for penstock doctor.
SELECT queue_no, group_key, gate, state, is_blocked, count(*)
  FROM message
 WHERE gate > 0
 GROUP BY queue_no, group_key, gate, state, is_blocked;

-- name: ungated
-- Queues with messages of groups that have no gate, for penstock doctor.
SELECT DISTINCT queue_no
  FROM message
 WHERE gate = 0
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased');

-- name: stuck
-- Groups without a gate in which every message is blocked, for penstock doctor.
SELECT queue_no, group_key
  FROM message
 WHERE gate = 0
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased')
 GROUP BY queue_no, group_key
HAVING min(is_blocked) = 1;
