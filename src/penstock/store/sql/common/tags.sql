-- Messages by their tags. Each tag has an index in the order of message_no, so that the cost of a
-- page does not depend on the number of messages.

-- name: find
-- Live messages in the order of sends. The caller adds the conditions.
SELECT {columns}
  FROM message
 WHERE message_no > :after_no
   AND (state = 'leased' OR (due_at >= :due_from AND due_at < :due_before))
   {conditions}
 ORDER BY message_no
 LIMIT :limit
 {lock};

-- name: where_tag1
-- A condition of find.
AND tag1 = :tag1

-- name: where_tag2
-- A condition of find.
AND tag2 = :tag2

-- name: where_queue_no
-- A condition of find.
AND queue_no = :queue_no

-- name: where_live
-- A condition of find.
AND state IN ('waiting', 'ready', 'leased')

-- name: where_queued
-- A condition of find.
AND state IN ('waiting', 'ready')

-- name: where_leased
-- A condition of find, written so that it matches no partial index: otherwise all leased messages
-- might be read.
AND state || '' = 'leased'

-- name: put_body
-- A new body for an unclaimed message. It replaces the old one if that is of the same day;
-- otherwise the old one stays unused.
INSERT INTO body_{day} (message_no, body, attributes, trace)
VALUES (:message_no, :body, :attributes, :trace)
    ON CONFLICT (message_no)
    DO UPDATE
   SET body = excluded.body,
       attributes = excluded.attributes,
       trace = excluded.trace;

-- name: relabel
-- … and the columns that depend on it.
UPDATE message
   SET kind = :kind,
       tag1 = :tag1,
       tag2 = :tag2,
       size = :size,
       body_day = :body_day
 WHERE message_no = :message_no;
