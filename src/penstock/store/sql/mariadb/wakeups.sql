-- name: announce
-- A hint for other nodes.
INSERT INTO wakeup (at, sender, hints)
VALUES (:at, :sender, :hints);

-- name: latest
-- The number of the last hint; the table is empty after a restart of the server.
SELECT coalesce(max(wakeup_no), 0)
  FROM wakeup;

-- name: hints
-- Hints of others, behind those that were read before.
SELECT wakeup_no, hints
  FROM wakeup
 WHERE wakeup_no > :after_no
   AND sender <> :sender
 ORDER BY wakeup_no;

-- name: forget
-- Delete hints that every node has read, or that are too old to matter.
DELETE FROM wakeup
 WHERE at < :before_at;
