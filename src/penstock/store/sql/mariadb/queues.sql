-- name: change
-- As in common/: the first statement returns what the second one writes.
SELECT queue_no, name, coalesce(:settings, settings), coalesce(:is_paused, is_paused), version + 1,
       created_at, :now, held_by
  FROM queue
 WHERE queue_no = :queue_no
   AND removed_at IS NULL
   FOR UPDATE;
UPDATE queue
   SET settings = coalesce(:settings, settings),
       is_paused = coalesce(:is_paused, is_paused),
       changed_at = :now,
       version = version + 1
 WHERE queue_no IN ({found:queue_no});

-- name: unhold
-- As in common/: the first statement returns what the second one changes.
SELECT queue_no
  FROM queue
 WHERE removed_at IS NULL
   AND held_by IS NOT NULL
   AND queue_no IN {list:queue_nos}
 ORDER BY queue_no
   FOR UPDATE;
UPDATE queue
   SET held_by = NULL,
       version = version + 1
 WHERE queue_no IN ({found:queue_no});

-- name: serialize_removals
-- Transactions that remove queues read the table before they lock it: without this lock, two of
-- them would wait for each other.
SELECT slot
  FROM lock_slot
 WHERE purpose = 0
   AND slot = 1
   FOR UPDATE;

-- name: stop_writes
-- Every transaction that writes has locked this row for reading at its beginning. So from here on
-- all sent messages are visible, no other transaction holds a lock, and new transactions wait for
-- us.
SELECT slot
  FROM lock_slot
 WHERE purpose = 0
   AND slot = 0
   FOR UPDATE;

-- name: lock_room
-- Two sends that count a queue's messages must not both find the last place free.
SELECT slot
  FROM lock_slot
 WHERE purpose = 4
   AND slot IN ({slots:queue_nos})
 ORDER BY slot
   FOR UPDATE;

-- name: lock_queues
-- Queues with limits or fair share: a message that enters or leaves changes which others may be
-- claimed.
SELECT slot
  FROM lock_slot
 WHERE purpose = 5
   AND slot IN ({slots:queue_nos})
 ORDER BY slot
   FOR UPDATE;

-- name: try_lock_queues
-- The same without waiting: returns the queues that are locked now.
SELECT q.no
  FROM JSON_TABLE(:queue_nos, '$[*]' COLUMNS (no bigint PATH '$')) AS q
 STRAIGHT_JOIN lock_slot AS s FORCE INDEX (PRIMARY)
    ON s.purpose = 5
   AND s.slot = q.no % 2048
   FOR UPDATE SKIP LOCKED;

-- name: lock
-- As in common/, but locked, so that concurrent changes do not overwrite each other.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue FORCE INDEX (queue_by_name)
 WHERE removed_at IS NULL
   AND name = :name
   FOR UPDATE;

-- name: lock_holds
-- Transactions that hold or release queues lock them in one order.
SELECT queue_no
  FROM queue
 WHERE queue_no IN {list:queue_nos}
 ORDER BY queue_no
   FOR UPDATE;

-- name: page_of_sources
-- As in common/, with MariaDB's JSON.
SELECT queue_no, name, settings, is_paused, version, created_at, changed_at, held_by
  FROM queue
 WHERE removed_at IS NULL
   AND name > :after
   AND substr(name, 1, length(CAST(:prefix AS TEXT))) = :prefix
   AND (CAST(:contains AS TEXT) = '' OR replace(lower(name), :contains, '') <> lower(name))
   AND JSON_VALUE(settings, '$.dead_letter_queue') = :dead_letter_queue
 ORDER BY name
 LIMIT :limit;

-- name: claimable
-- As in common/, one lookup per state: the index has them one behind the other.
SELECT queue_no, is_ready, due_at
  FROM (SELECT q.queue_no,
               q.removed_at IS NOT NULL
                 OR EXISTS (SELECT 1
                              FROM message AS m FORCE INDEX (message_to_claim)
                             WHERE m.queue_no = q.queue_no
                               AND m.state = 'ready'
                               AND m.is_blocked = 0) AS is_ready,
               least(coalesce((SELECT m.due_at
                                 FROM message AS m FORCE INDEX (message_to_fall_due)
                                WHERE m.queue_no = q.queue_no
                                  AND m.state = 'waiting'
                                ORDER BY m.due_at
                                LIMIT 1), l.due_at),
                     coalesce(l.due_at, 9223372036854775807)) AS due_at
          FROM queue AS q
          JOIN (SELECT n.queue_no,
                       (SELECT m.due_at
                          FROM message AS m FORCE INDEX (message_to_fall_due)
                         WHERE m.queue_no = n.queue_no
                           AND m.state = 'leased'
                         ORDER BY m.due_at
                         LIMIT 1) AS due_at
                  FROM queue AS n
                 WHERE n.queue_no IN {list:queue_nos}) AS l
            ON l.queue_no = q.queue_no
         WHERE q.removed_at IS NOT NULL
            OR (q.is_paused = 0 AND q.held_by IS NULL)) AS s
 WHERE is_ready = 1
    OR due_at IS NOT NULL;
