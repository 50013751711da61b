-- Messages of a queue by kind, tag, group and more. A stretch of fixed length is read in index
-- order and filtered, so a page costs the same however rare matches are.

-- name: stretch
-- The matching messages of a stretch. The caller chooses where it begins and its order.
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
-- Where the stretch ends, unless the queue ends before it.
SELECT {order}
  FROM message
 WHERE queue_no = :queue_no
   {begin}
 ORDER BY {order}
 LIMIT 1 OFFSET :length - 1;

-- name: begin_ready
-- The beginning of a stretch of ready messages.
AND state = 'ready'
           AND (is_blocked, priority, turn, order_no)
               > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT), CAST(:after3 AS BIGINT),
                  CAST(:after4 AS BIGINT))

-- name: begin_waiting
-- … of messages that are not due yet.
AND state = 'waiting'
           AND (due_at, message_no) > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT))

-- name: begin_leased
-- … of leased messages.
AND state = 'leased'
           AND (due_at, message_no) > (CAST(:after1 AS BIGINT), CAST(:after2 AS BIGINT))

-- name: begin_dead
-- … of dead messages.
AND state = 'dead'
           AND message_no > CAST(:after1 AS BIGINT)

-- name: order_ready
-- In the order of claims.
is_blocked, priority, turn, order_no

-- name: order_waiting
-- By due date.
due_at, message_no

-- name: order_leased
-- By the end of the lease.
due_at, message_no

-- name: order_dead
-- In the order of sends.
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
