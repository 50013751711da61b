-- Statements that must stay cheap however full the tables are leave PostgreSQL only one plan:
-- lookups by a list (ARRAY) or one by one (LATERAL … LIMIT 1, EXISTS … OFFSET 0). A join would be
-- planned for the number of rows at some moment, and could later read the whole table.

-- name: take_numbers
-- A sequence does not block other transactions, but the numbers of one call need not be
-- consecutive, so each is returned as a range of one.
SELECT nextval('message_no'), 1
  FROM generate_series(1, CAST(:count AS integer));

-- name: live_groups
-- As in common/, with PostgreSQL's JSON.
SELECT CAST(g.pair ->> 0 AS bigint), g.pair ->> 1
  FROM json_array_elements(CAST(:groups AS json)) AS g (pair)
 WHERE EXISTS (SELECT 1
                 FROM message AS m
                WHERE m.queue_no = CAST(g.pair ->> 0 AS bigint)
                  AND m.group_key = g.pair ->> 1
                  AND m.state IN ('waiting', 'ready', 'leased')
                LIMIT 1 OFFSET 0);

-- name: lock_groups
-- Sends lock a group before they look for earlier messages, and completions before they unblock the
-- next one, so that each sees what the other has done. Always in the same order, to prevent
-- deadlocks, and with a limited number of locks, because the server has room for some thousands.
SELECT pg_advisory_xact_lock(1885697140, s.slot)
  FROM (SELECT DISTINCT hashtext(concat(g.pair ->> 0, '/', g.pair ->> 1)) & 2047 AS slot
          FROM json_array_elements(CAST(:groups AS json)) AS g (pair)
         ORDER BY slot) AS s;

-- name: try_lock_groups
-- The same without waiting: returns the groups that are locked now.
SELECT CAST(g.pair ->> 0 AS bigint), g.pair ->> 1
  FROM json_array_elements(CAST(:groups AS json)) AS g (pair)
 WHERE pg_try_advisory_xact_lock(
         1885697140, hashtext(concat(g.pair ->> 0, '/', g.pair ->> 1)) & 2047);

-- name: fallen_due
-- As in common/, plus row locks that skip locked messages. Groups, which must be locked before
-- their messages leave them, are locked in the same way, without waiting.
WITH due AS MATERIALIZED (
  SELECT {columns}
    FROM message
   WHERE queue_no = :queue_no
     AND state IN ('waiting', 'leased')
     AND due_at >= :due_from
     AND due_at <= :now
   ORDER BY due_at, order_no
   LIMIT :limit
     FOR UPDATE SKIP LOCKED
)
SELECT {columns}
  FROM due
 WHERE group_key IS NULL
    OR pg_try_advisory_xact_lock(1885697140, hashtext(concat(queue_no, '/', group_key)) & 2047)
 ORDER BY due_at, order_no;

-- name: expired
-- As in common/, plus locks of rows and groups, as for fallen_due.
WITH old AS MATERIALIZED (
  SELECT {columns}
    FROM message
   WHERE queue_no = :queue_no
     AND state IN ('waiting', 'ready')
     AND expires_at IS NOT NULL
     AND expires_at <= :now
   ORDER BY expires_at
   LIMIT :limit
     FOR UPDATE SKIP LOCKED
)
SELECT {columns}
  FROM old
 WHERE group_key IS NULL
    OR pg_try_advisory_xact_lock(1885697140, hashtext(concat(queue_no, '/', group_key)) & 2047)
 ORDER BY expires_at;

-- name: claim
-- As in common/, plus row locks: claims skip each other's rows instead of waiting for them.
WITH picked AS MATERIALIZED (
  SELECT message_no, size, priority, turn, order_no
    FROM message
   WHERE queue_no = :queue_no
     AND state = 'ready'
     AND is_blocked = 0
     AND (expires_at IS NULL OR expires_at > :now)
   ORDER BY priority, turn, order_no
   LIMIT :limit
     FOR UPDATE SKIP LOCKED
), sized AS (
  SELECT message_no, size,
         sum(size) OVER (ORDER BY priority, turn, order_no ROWS UNBOUNDED PRECEDING) AS total
    FROM picked
)
UPDATE message
   SET {leased}
 WHERE message_no = ANY (ARRAY(SELECT message_no
                                 FROM sized
                                WHERE total <= CAST(:max_bytes AS bigint)
                                   OR total = size))
RETURNING {columns};

-- name: complete
-- As in common/, but messages are locked before they are recorded, and removed at once. The state
-- is compared in a way that matches no partial index: otherwise all leased messages might be read.
-- The list of queues is named only for its lock: the removal of a queue waits for us, so that we do
-- not wait for it later.
WITH held AS MATERIALIZED (
  SELECT m.*, {result} AS result
    FROM json_array_elements(CAST(:held AS json)) AS h (lease)
   CROSS JOIN LATERAL (SELECT *
                         FROM message
                        WHERE message_no = CAST(h.lease ->> 0 AS bigint)
                          AND lease_no = CAST(h.lease ->> 1 AS bigint)
                          AND leased_at = CAST(h.lease ->> 2 AS bigint)
                          AND concat(state) = 'leased'
                        LIMIT 1
                          FOR UPDATE) AS m
), gone AS (
  DELETE FROM message
   WHERE message_no = ANY (ARRAY(SELECT message_no FROM held))
), noted AS (
  INSERT INTO history_{day} (
    id, message_no, queue_no, outcome, reason, kind, entity_id, tag1, tag2, group_key, priority,
    sent_at, due_at, first_leased_at, leased_at, finished_at, attempts, failures, lease_no,
    leased_by, last_error, size, body_day, route, crashes, held_key, result, flow_no)
  SELECT id, message_no, queue_no, 'done', NULL, kind, entity_id, tag1, tag2, group_key, priority,
         sent_at, due_at, first_leased_at, leased_at, CAST(:now AS bigint), attempts, failures,
         lease_no, leased_by, last_error, size, body_day, route, crashes,
         CASE WHEN dedup_until = 'ended' THEN dedup_key END, result, flow_no
    FROM held
)
SELECT message_no, lease_no, leased_at, id, queue_no, group_key,
       CASE WHEN dedup_until = 'ended' THEN dedup_key END, gate, flow_no
  FROM held
 WHERE NOT EXISTS (SELECT 1 FROM queue WHERE false);

-- name: given_result
-- As in common/, with PostgreSQL's JSON.
h.lease ->> 3

-- name: no_result
-- As in common/, with the type of the column.
CAST(NULL AS text)

-- name: remove_completed
-- Nothing to do: complete has removed them.

-- name: by_no
-- As in common/, but locked, always in the same order.
SELECT {columns}
  FROM message
 WHERE message_no IN {list:message_nos}
 ORDER BY message_no
   FOR UPDATE;

-- name: by_id_to_change
-- As in common/, but locked.
SELECT {columns}
  FROM message
 WHERE id = :id
   FOR UPDATE;

-- name: unblock
-- As in common/, with PostgreSQL's JSON; also returns the places of the messages.
UPDATE message
   SET is_blocked = 0
 WHERE is_blocked = 1
   AND message_no = ANY (ARRAY(
         SELECT (SELECT m.message_no
                   FROM message AS m
                  WHERE m.queue_no = CAST(g.pair ->> 0 AS bigint)
                    AND m.group_key = g.pair ->> 1
                    AND m.state IN ('waiting', 'ready', 'leased')
                  ORDER BY m.order_no
                  LIMIT 1)
           FROM json_array_elements(CAST(:groups AS json)) AS g (pair)))
RETURNING queue_no, state, kind, priority, turn, order_no;

-- name: any_of
-- As in common/, looked up by a list.
SELECT {columns}
  FROM message
 WHERE message_no = ANY (ARRAY(
         SELECT message_no FROM message WHERE queue_no = :queue_no AND state = 'ready'
          UNION ALL
         SELECT message_no
           FROM message
          WHERE queue_no = :queue_no
            AND state IN ('waiting', 'leased')
          UNION ALL
         SELECT message_no FROM message WHERE queue_no = :queue_no AND state = 'dead'
          LIMIT :limit))
 ORDER BY message_no
 {lock};

-- name: skip_locked
-- Messages that other transactions have locked are skipped.
FOR UPDATE SKIP LOCKED;

-- name: unlocked_by_no
-- As in common/, but locked; messages that other transactions have locked are skipped.
SELECT {columns}
  FROM message
 WHERE message_no IN {list:message_nos}
 ORDER BY message_no
   FOR UPDATE SKIP LOCKED;
