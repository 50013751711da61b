-- name: lock
-- Nothing to lock: SQLite has one writer.

-- name: days
-- The days that have tables.
SELECT day
  FROM day
 ORDER BY day;

-- name: add_day
-- Record that a day has tables.
INSERT INTO day (day)
VALUES (:day)
    ON CONFLICT DO NOTHING;

-- name: remove_day
-- Delete the record of a day whose tables were dropped.
DELETE FROM day
 WHERE day = :day;

-- name: create_history_by_id
-- Look-up by message.
CREATE INDEX IF NOT EXISTS history_{day}_by_id ON history_{day} (id);

-- name: create_history_by_queue
-- Look-up by queue and time.
CREATE INDEX IF NOT EXISTS history_{day}_by_queue ON history_{day} (queue_no, finished_at);

-- name: create_history_by_kind
-- Look-up by kind and time.
CREATE INDEX IF NOT EXISTS history_{day}_by_kind ON history_{day} (kind, finished_at)
 WHERE kind IS NOT NULL;

-- name: create_history_by_tag1
-- Look-up by tag and time.
CREATE INDEX IF NOT EXISTS history_{day}_by_tag1 ON history_{day} (tag1, finished_at)
 WHERE tag1 IS NOT NULL;

-- name: create_history_by_tag2
-- Look-up by tag and time.
CREATE INDEX IF NOT EXISTS history_{day}_by_tag2 ON history_{day} (tag2, finished_at)
 WHERE tag2 IS NOT NULL;

-- name: create_history_by_time
-- Look-up by time alone.
CREATE INDEX IF NOT EXISTS history_{day}_by_time ON history_{day} (finished_at);

-- name: create_attempt_by_id
-- The attempts of a message.
CREATE INDEX IF NOT EXISTS attempt_{day}_by_id ON attempt_{day} (id);

-- name: drop_history
-- Drops a whole day: no row is deleted one by one.
DROP TABLE IF EXISTS history_{day};

-- name: drop_attempt
-- Drops a whole day.
DROP TABLE IF EXISTS attempt_{day};

-- name: drop_attempt_log
-- Drops a whole day.
DROP TABLE IF EXISTS attempt_log_{day};

-- name: drop_body
-- Drops a whole day.
DROP TABLE IF EXISTS body_{day};

-- name: save_bodies
-- Before a day is dropped, the bodies of its live messages move to another day.
INSERT INTO body_{to_day} (message_no, body, attributes, trace)
SELECT b.message_no, b.body, b.attributes, b.trace
  FROM body_{day} AS b
  JOIN message AS m
    ON m.message_no = b.message_no
 WHERE m.body_day = :day;

-- name: point_bodies
-- … and their messages point to it.
UPDATE message
   SET body_day = :to_day
 WHERE body_day = :day;
