-- Messages of a queue by kind, tag, group and more. A fixed number of messages is read in index
-- order and filtered, so a page costs the same however rare matches are.

-- name: page
-- The matches among :length messages. The caller chooses where these begin and their order.
SELECT {columns}
  FROM (SELECT {columns}
          FROM message
         WHERE queue_no = :queue_no
           {begin}
         ORDER BY {order}
         LIMIT :length) AS scanned
 WHERE sent_at >= :sent_from
   AND sent_at < :sent_before
   {conditions}
 ORDER BY {order}
 LIMIT :limit;

-- name: end
-- The last of these messages, unless the queue ends before it.
SELECT {order}
  FROM message
 WHERE queue_no = :queue_no
   {begin}
 ORDER BY {order}
 LIMIT 1 OFFSET :length - 1;

-- name: begin_ready
-- Where a page of ready messages begins.
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
-- A condition of page.
AND kind = :kind

-- name: where_tag
-- A condition of page.
AND (tag1 = :tag OR tag2 = :tag)

-- name: where_group
-- A condition of page.
AND group_key = :group

-- name: where_entity_id
-- A condition of page.
AND entity_id = :entity_id
