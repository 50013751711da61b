-- Statements name their index: a plan must not depend on the number of rows at some moment.

-- name: take_numbers
-- A sequence does not block other transactions, but the numbers of one call need not be
-- consecutive, so each is returned as a range of one.
SELECT NEXTVAL(message_no), 1
  FROM seq_1_to_1000000
 LIMIT :count;

-- name: live_groups
-- As in common/, with MariaDB's JSON.
SELECT g.c0, g.c1
  FROM {table:groups:bigint,text} AS g
 WHERE EXISTS (SELECT 1
                 FROM message AS m FORCE INDEX (message_in_group)
                WHERE m.queue_no = g.c0
                  AND m.live_group = g.c1);

-- name: lock_groups
-- Sends lock a group before they look for earlier messages, and completions before they unblock the
-- next one, so that each sees what the other has done. Always in the same order, to prevent
-- deadlocks.
SELECT slot
  FROM lock_slot
 WHERE purpose = 1
   AND slot IN ({slots:groups})
 ORDER BY slot
   FOR UPDATE;

-- name: try_lock_groups
-- The same without waiting: returns the groups that are locked now.
SELECT g.c0, g.c1
  FROM {table:groups:bigint,text} AS g
 STRAIGHT_JOIN lock_slot AS s FORCE INDEX (PRIMARY)
    ON s.purpose = 1
   AND s.slot = {slot:g.c0,g.c1}
   FOR UPDATE SKIP LOCKED;

-- name: fallen_due
-- As in common/, plus row locks that skip locked messages. Groups, which must be locked before
-- their messages leave them, are locked in the same way, without waiting. One arm per state, each in
-- the order of its index; the messages are looked up by number, because temporary tables with long
-- texts are on the disk.
SELECT {columns}
  FROM (SELECT message_no AS no, due_at AS due, order_no AS place
          FROM (SELECT message_no, due_at, order_no
                  FROM message FORCE INDEX (message_to_fall_due)
                 WHERE queue_no = :queue_no
                   AND state = 'waiting'
                   AND due_at >= :due_from
                   AND due_at <= :now
                 ORDER BY due_at, order_no
                 LIMIT :limit
                   FOR UPDATE SKIP LOCKED) AS waits
         UNION ALL
        SELECT message_no, due_at, order_no
          FROM (SELECT message_no, due_at, order_no
                  FROM message FORCE INDEX (message_to_fall_due)
                 WHERE queue_no = :queue_no
                   AND state = 'leased'
                   AND due_at >= :due_from
                   AND due_at <= :now
                 ORDER BY due_at, order_no
                 LIMIT :limit
                   FOR UPDATE SKIP LOCKED) AS leases
         ORDER BY due, place
         LIMIT :limit) AS d
 STRAIGHT_JOIN message AS m FORCE INDEX (PRIMARY)
    ON m.message_no = d.no
  LEFT JOIN lock_slot AS s FORCE INDEX (PRIMARY)
    ON s.purpose = 1
   AND s.slot = {slot:m.queue_no,m.group_key}
 WHERE m.group_key IS NULL
    OR s.slot IS NOT NULL
 ORDER BY d.due, d.place
   FOR UPDATE SKIP LOCKED;

-- name: next_due
-- As in common/, one arm per state.
SELECT due_at
  FROM ((SELECT due_at
           FROM message FORCE INDEX (message_to_fall_due)
          WHERE queue_no = :queue_no
            AND state = 'waiting'
            AND due_at >= :due_from
          ORDER BY due_at
          LIMIT 1)
         UNION ALL
        (SELECT due_at
           FROM message FORCE INDEX (message_to_fall_due)
          WHERE queue_no = :queue_no
            AND state = 'leased'
            AND due_at >= :due_from
          ORDER BY due_at
          LIMIT 1)) AS d
 ORDER BY due_at
 LIMIT 1;

-- name: expired
-- As in common/, plus locks of rows and groups, as for fallen_due.
SELECT {columns}
  FROM (SELECT message_no AS no, unclaimed_until AS until
          FROM message FORCE INDEX (message_to_expire)
         WHERE queue_no = :queue_no
           AND unclaimed_until <= :now
         ORDER BY unclaimed_until
         LIMIT :limit
           FOR UPDATE SKIP LOCKED) AS d
 STRAIGHT_JOIN message AS m FORCE INDEX (PRIMARY)
    ON m.message_no = d.no
  LEFT JOIN lock_slot AS s FORCE INDEX (PRIMARY)
    ON s.purpose = 1
   AND s.slot = {slot:m.queue_no,m.group_key}
 WHERE m.group_key IS NULL
    OR s.slot IS NOT NULL
 ORDER BY d.until
   FOR UPDATE SKIP LOCKED;

-- name: claim
-- As in common/, plus row locks: claims skip each other's rows instead of waiting for them. The
-- first statement returns the messages as the second one leaves them. Locked at the end again: that
-- reads them as they were locked, whenever the statement's view of committed rows was made.
SELECT {leased_columns}
  FROM (SELECT message_no AS no, size AS bytes,
               sum(size) OVER (ORDER BY priority, turn, order_no ROWS UNBOUNDED PRECEDING) AS total
          FROM (SELECT message_no, size, priority, turn, order_no
                  FROM message FORCE INDEX (message_to_claim)
                 WHERE queue_no = :queue_no
                   AND state = 'ready'
                   AND is_blocked = 0
                   AND (expires_at IS NULL OR expires_at > :now)
                 ORDER BY priority, turn, order_no
                 LIMIT :limit
                   FOR UPDATE SKIP LOCKED) AS picked) AS sized
 STRAIGHT_JOIN message AS m FORCE INDEX (PRIMARY)
    ON m.message_no = sized.no
 WHERE total <= CAST(:max_bytes AS signed)
    OR total = bytes
   FOR UPDATE;
UPDATE message
   SET {leased}
 WHERE message_no IN ({found:message_no});

-- name: complete
-- As in common/, but messages are locked before they are recorded.
INSERT INTO history_{day} (
  id, message_no, queue_no, outcome, reason, kind, entity_id, tag1, tag2, group_key, priority,
  sent_at, due_at, first_leased_at, leased_at, finished_at, attempts, failures, lease_no, leased_by,
  last_error, size, body_day, route, crashes, held_key, result, flow_no)
SELECT m.id, m.message_no, m.queue_no, 'done', NULL, m.kind, m.entity_id, m.tag1, m.tag2,
       m.group_key, m.priority, m.sent_at, m.due_at, m.first_leased_at, m.leased_at, :now,
       m.attempts, m.failures, m.lease_no, m.leased_by, m.last_error, m.size, m.body_day,
       m.route, m.crashes, CASE WHEN m.dedup_until = 'ended' THEN m.dedup_key END, {result},
       m.flow_no
  FROM {table:held:bigint,bigint,bigint,long} AS h
 STRAIGHT_JOIN message AS m FORCE INDEX (PRIMARY)
    ON m.message_no = h.c0
 WHERE m.state = 'leased'
   AND m.lease_no = h.c1
   AND m.leased_at = h.c2
   FOR UPDATE
RETURNING message_no, lease_no, leased_at, id, queue_no, group_key, held_key,
          CASE
            WHEN group_key IS NOT NULL
            THEN (SELECT m.gate FROM message AS m WHERE m.message_no = history_{day}.message_no)
          END, flow_no;

-- name: given_result
-- As in common/, with MariaDB's JSON.
h.c3

-- name: by_no
-- As in common/, but locked, always in the same order.
SELECT {columns}
  FROM message FORCE INDEX (PRIMARY)
 WHERE message_no IN {list:message_nos}
 ORDER BY message_no
   FOR UPDATE;

-- name: by_id_to_change
-- As in common/, but locked.
SELECT {columns}
  FROM message FORCE INDEX (message_by_id)
 WHERE id = :id
   FOR UPDATE;

-- name: unblock
-- As in common/, with MariaDB's JSON.
SELECT m.queue_no, m.state, m.message_no AS found_no
  FROM {table:groups:bigint,text} AS g
 STRAIGHT_JOIN message AS m FORCE INDEX (PRIMARY)
    ON m.message_no = (SELECT f.message_no
                         FROM message AS f FORCE INDEX (message_in_group)
                        WHERE f.queue_no = g.c0
                          AND f.live_group = g.c1
                        ORDER BY f.order_no
                        LIMIT 1)
 WHERE m.is_blocked = 1
   FOR UPDATE;
UPDATE message
   SET is_blocked = 0
 WHERE message_no IN ({found:found_no});

-- name: any_of
-- As in common/, from one index.
SELECT {columns}
  FROM message FORCE INDEX (message_at_rest)
 WHERE queue_no = :queue_no
 LIMIT :limit
 {lock};

-- name: buried
-- As in common/, with the index named.
SELECT {columns}
  FROM message FORCE INDEX (message_at_rest)
 WHERE queue_no = :queue_no
   AND dead_no > 0
   AND order_no < :before_no
   AND (:any_home = 1
        OR (SELECT home.removed_at
              FROM queue AS home
             WHERE home.queue_no = message.dead_from) IS NULL)
 ORDER BY dead_no
 LIMIT :limit
 {lock};

-- name: skip_locked
-- Messages that other transactions have locked are skipped.
FOR UPDATE SKIP LOCKED;

-- name: unlocked_by_no
-- As in common/, but locked; messages that other transactions have locked are skipped.
SELECT {columns}
  FROM message FORCE INDEX (PRIMARY)
 WHERE message_no IN {list:message_nos}
 ORDER BY message_no
   FOR UPDATE SKIP LOCKED;

-- name: dead_letters
-- As in common/: found without locks, then locked by number, because the order is that of no index.
SELECT {columns}
  FROM message FORCE INDEX (PRIMARY)
 WHERE message_no IN (
         SELECT message_no
           FROM (SELECT message_no
                   FROM message FORCE INDEX (message_to_claim)
                  WHERE queue_no = :queue_no
                    AND dead_from IS NOT NULL
                    AND state IN ('waiting', 'ready')
                    AND order_no < :before_no
                    AND (:any_home = 1
                         OR (SELECT home.removed_at
                               FROM queue AS home
                              WHERE home.queue_no = message.dead_from) IS NULL)
                  ORDER BY order_no
                  LIMIT :limit) AS first_ones)
   AND queue_no = :queue_no
   AND dead_from IS NOT NULL
   AND state IN ('waiting', 'ready')
 ORDER BY order_no
 {lock};

-- name: browse_dead
-- As in common/, with the index of dead messages.
SELECT {columns}
  FROM message FORCE INDEX (message_at_rest)
 WHERE queue_no = :queue_no
   AND dead_no >= CAST(:after1 AS BIGINT)
   AND (dead_no, 0, 0)
       > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT))
 ORDER BY dead_no
 LIMIT :limit;
