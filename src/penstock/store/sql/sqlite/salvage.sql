-- name: is_sound
-- Whether a page matches the checksum that it carries.
SELECT verify_checksum(:page);

-- name: columns
-- The columns of a table, in their order.
SELECT name, type, "notnull", pk
  FROM pragma_table_info(:table_name)
 ORDER BY cid;

-- name: add
-- A row as it was; one that violates a constraint of its table is left out.
INSERT OR IGNORE INTO {table} ({names})
VALUES ({marks});

-- name: raise_numbers
-- The latest number that a table has assigned.
UPDATE sqlite_sequence
   SET seq = max(seq, :seq)
 WHERE name = :name;

-- name: last_message
-- The latest message number in a table.
SELECT max(message_no)
  FROM {table};

-- name: take
-- Number new messages after all that were ever sent.
UPDATE sequence
   SET taken_no = max(taken_no, :taken_no)
 WHERE name = 'message';

-- name: queues
-- The names of all queues, removed ones included.
SELECT queue_no, name
  FROM queue;

-- name: queues_missing
-- Queues that have messages but no row.
SELECT DISTINCT m.queue_no
  FROM message AS m
 WHERE NOT EXISTS (SELECT 1 FROM queue AS q WHERE q.queue_no = m.queue_no)
 ORDER BY 1;

-- name: add_queue
-- A queue in place of one that cannot be read.
INSERT INTO queue (queue_no, name, settings, created_at, changed_at)
VALUES (:queue_no, :name, :settings, :now, :now);

-- name: message_nos
-- All messages that were copied.
SELECT message_no
  FROM message;

-- name: body_days
-- The days of the bodies of live messages.
SELECT DISTINCT body_day
  FROM message;

-- name: without_body
-- Live messages whose body is missing.
SELECT m.message_no, m.id, m.queue_no
  FROM message AS m
 WHERE m.body_day = :day
   AND NOT EXISTS (SELECT 1 FROM body_{day} AS b WHERE b.message_no = m.message_no);

-- name: of_day
-- Live messages of a day that has no bodies at all.
SELECT message_no, id, queue_no
  FROM message
 WHERE body_day = :day;

-- name: remove
-- One message.
DELETE FROM message
 WHERE message_no = :message_no;

-- name: ended_ids
-- Messages that ended on this day.
SELECT id
  FROM history_{day};

-- name: dedup_of_nothing
-- Dedup keys whose message is not live.
SELECT d.queue_no, d.dedup_key, d.id
  FROM dedup AS d
 WHERE NOT EXISTS (SELECT 1 FROM message AS m WHERE m.id = d.id);

-- name: release_key
-- Make the key free again.
DELETE FROM dedup
 WHERE queue_no = :queue_no
   AND dedup_key = :dedup_key;

-- name: gated
-- Queues with limited groups.
SELECT DISTINCT queue_no
  FROM message
 WHERE gate > 0;

-- name: miscounted
-- Queues whose counters do not agree with the table, or do not add up.
SELECT q.queue_no
  FROM queue AS q
  LEFT JOIN (SELECT queue_no, sum(waiting) AS waiting, sum(ready) AS ready, sum(leased) AS leased,
                    sum(dead) AS dead, sum(sent_total) AS sent,
                    sum(done_total + dead_total + cancelled_total) AS ended
               FROM counter
              GROUP BY queue_no) AS c
    ON c.queue_no = q.queue_no
  LEFT JOIN (SELECT queue_no, sum(state = 'waiting') AS waiting, sum(state = 'ready') AS ready,
                    sum(state = 'leased') AS leased, sum(state = 'dead') AS dead
               FROM message
              GROUP BY queue_no) AS m
    ON m.queue_no = q.queue_no
 WHERE coalesce(c.waiting, 0) <> coalesce(m.waiting, 0)
    OR coalesce(c.ready, 0) <> coalesce(m.ready, 0)
    OR coalesce(c.leased, 0) <> coalesce(m.leased, 0)
    OR coalesce(c.dead, 0) <> coalesce(m.dead, 0)
    OR coalesce(c.sent, 0) <> coalesce(c.waiting + c.ready + c.leased + c.ended, 0);

-- name: add_counters
-- For queues whose counters cannot be read.
INSERT OR IGNORE INTO counter (queue_no, stripe)
SELECT queue_no, 0
  FROM queue;

-- name: count_again
-- The real numbers, in the first counter row of each queue; the others get zeros.
UPDATE counter
   SET (waiting, ready, leased, dead) = (
         SELECT coalesce(sum(m.state = 'waiting'), 0), coalesce(sum(m.state = 'ready'), 0),
                coalesce(sum(m.state = 'leased'), 0), coalesce(sum(m.state = 'dead'), 0)
           FROM message AS m
          WHERE m.queue_no = counter.queue_no
            AND counter.stripe = 0);

-- name: balance
-- Sent is the sum of live and ended messages.
UPDATE counter
   SET sent_total = waiting + ready + leased + done_total + dead_total + cancelled_total;
