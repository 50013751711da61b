-- Messages of a queue by what they are.  A stretch of fixed length is read in the order of its
-- index, and of that what fits is kept: so a page costs the same however rare it is.

-- name: stretch
-- What fits of a stretch.  Where it begins and its order are chosen by the caller.
SELECT {columns}
  FROM (SELECT {columns}
          FROM message
         WHERE queue_no = :queue_no
           {begin}
         ORDER BY {order}
         LIMIT :length) AS stretch
 WHERE sent_at >= :sent_from
   AND sent_at < :sent_before
   {conditions}
 ORDER BY {order}
 LIMIT :limit;

-- name: end
-- Where the stretch ends, if the queue does not end before it.
SELECT {order}
  FROM message
 WHERE queue_no = :queue_no
   {begin}
 ORDER BY {order}
 LIMIT 1 OFFSET :length - 1;

-- name: begin_ready
-- The beginning of a stretch of what is ready.
AND state = 'ready'
           AND (is_blocked, priority, turn, order_no)
               > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT),
                  CAST(:after4 AS BIGINT))

-- name: begin_waiting
-- … of what is not due yet.
AND state = 'waiting'
           AND (due_at, message_no) > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT))

-- name: begin_leased
-- … of what is leased.
AND state = 'leased'
           AND (due_at, message_no) > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT))

-- name: begin_dead
-- … of what is dead.
AND state = 'dead'
           AND message_no > CAST(:after1 AS BIGINT)

-- name: order_ready
-- As they would be claimed.
is_blocked, priority, turn, order_no

-- name: order_waiting
-- By due date.
due_at, message_no

-- name: order_leased
-- By the end of the lease.
due_at, message_no

-- name: order_dead
-- As they were sent.
message_no

-- name: where_kind
-- A condition of stretch.
AND kind = :kind

-- name: where_tag
-- A condition of stretch.
AND (tag1 = :tag OR tag2 = :tag)

-- name: where_group
-- A condition of stretch.
AND group_key = :group

-- name: where_entity_id
-- A condition of stretch.
AND entity_id = :entity_id
