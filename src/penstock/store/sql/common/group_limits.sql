-- Limits per group: who is let through.  The rule is in domain/queue/group_limit.py.

-- name: admitted
-- How many of each of these groups are let through, by their states.
SELECT g.value ->> 0, g.value ->> 1, m.state, count(*)
  FROM json_each(:groups) AS g
 CROSS JOIN message AS m
 WHERE m.queue_no = g.value ->> 0
   AND m.group_key = g.value ->> 1
   AND m.gate = 1
 GROUP BY 1, 2, 3;

-- name: next_held_back
-- Those of a group that are held back and come next.
SELECT message_no
  FROM message
 WHERE queue_no = :queue_no
   AND group_key = :group_key
   AND gate = 2
   AND state = 'ready'
 ORDER BY priority, turn, order_no
 LIMIT :limit;

-- name: admit
-- Now, or at an instant until which it waits.
UPDATE message
   SET gate = 1,
       is_blocked = 0,
       state = :state,
       due_at = coalesce(:due_at, due_at)
 WHERE message_no = :message_no;

-- name: recall
-- Under other limits: those that wait for an instant are judged anew.
UPDATE message
   SET state = 'ready',
       due_at = :now
 WHERE queue_no = :queue_no
   AND gate = 1
   AND state = 'waiting';

-- name: hold_back_all
-- All that have a group, but for those that somebody holds.
UPDATE message
   SET gate = CASE state WHEN 'leased' THEN 1 ELSE 2 END,
       is_blocked = CASE state WHEN 'leased' THEN 0 ELSE 1 END
 WHERE queue_no = :queue_no
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased');

-- name: free_all
-- No group is limited any more.
UPDATE message
   SET gate = 0,
       is_blocked = 0
 WHERE queue_no = :queue_no
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased');

-- name: groups_held_back
-- Groups with somebody to be let through.
SELECT DISTINCT group_key
  FROM message
 WHERE queue_no = :queue_no
   AND gate = 2
   AND state = 'ready';

-- name: all_groups
-- How many of all groups are let through and held back, for check-ups.
SELECT queue_no, group_key, gate, state, is_blocked, count(*)
  FROM message
 WHERE gate > 0
 GROUP BY queue_no, group_key, gate, state, is_blocked;

-- name: ungated
-- Groups of limited queues whose messages nothing holds back, for check-ups.
SELECT DISTINCT queue_no
  FROM message
 WHERE gate = 0
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased');

-- name: stuck
-- Groups without a gate in which everybody waits for somebody before it, for check-ups.
SELECT queue_no, group_key
  FROM message
 WHERE gate = 0
   AND group_key IS NOT NULL
   AND state IN ('waiting', 'ready', 'leased')
 GROUP BY queue_no, group_key
HAVING min(is_blocked) = 1;
