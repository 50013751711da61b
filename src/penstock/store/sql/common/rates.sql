-- Token buckets of rates: of queues (with an empty group) and of groups. A missing bucket is full.
-- The table is called `pace`, and the instant of its credit `paced_at`.

-- name: find
-- The buckets of some groups.
SELECT p.queue_no, p.group_key, p.credit, p.paced_at
  FROM json_each(:groups) AS g
 CROSS JOIN pace AS p
 WHERE p.queue_no = g.value ->> 0
   AND p.group_key = g.value ->> 1;

-- name: save
-- The buckets after a claim.
INSERT INTO pace (queue_no, group_key, credit, paced_at, full_at)
VALUES (:queue_no, :group_key, :credit, :credited_at, :full_at)
    ON CONFLICT (queue_no, group_key)
    DO UPDATE
   SET credit = excluded.credit,
       paced_at = excluded.paced_at,
       full_at = excluded.full_at;

-- name: forget
-- Delete full buckets.
DELETE FROM pace
 WHERE (queue_no, group_key) IN (
         SELECT queue_no, group_key
           FROM pace
          WHERE full_at <= :now
          LIMIT :limit
       );

-- name: forget_of_queue
-- Delete buckets whose rate has changed.
DELETE FROM pace
 WHERE queue_no = :queue_no
   AND (group_key = '') = (:of_queue = 1);
