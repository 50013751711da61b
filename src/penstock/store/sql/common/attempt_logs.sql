-- name: add
-- Add a part of an attempt's log; a repeated part changes nothing.
INSERT INTO attempt_log_{day} (message_no, lease_no, seq, lines)
VALUES (:message_no, :lease_no, :seq, :lines)
    ON CONFLICT DO NOTHING;

-- name: size
-- How much of an attempt's log is stored, in characters.
SELECT coalesce(sum(length(lines)), 0)
  FROM attempt_log_{day}
 WHERE message_no = :message_no
   AND lease_no = :lease_no
   AND seq <> :seq;

-- name: of_message
-- The log of a message on one day, from a place on.
SELECT lease_no, seq, lines
  FROM attempt_log_{day}
 WHERE message_no = :message_no
   AND (lease_no, seq) > (:after_lease_no, :after_seq)
 ORDER BY lease_no, seq
 LIMIT :limit;
