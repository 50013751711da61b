-- name: find
-- As in common/, with PostgreSQL's JSON.
SELECT p.queue_no, p.group_key, p.credit, p.paced_at
  FROM json_array_elements(CAST(:groups AS json)) AS g (pair)
 CROSS JOIN LATERAL (SELECT *
                       FROM pace
                      WHERE queue_no = CAST(g.pair ->> 0 AS bigint)
                        AND group_key = g.pair ->> 1
                      LIMIT 1) AS p;

-- name: forget
-- As in common/, but skips rows that are locked, so that it never waits.
DELETE FROM pace
 WHERE ctid = ANY (ARRAY(
         SELECT ctid
           FROM pace
          WHERE full_at <= :now
          LIMIT :limit
            FOR UPDATE SKIP LOCKED));

-- name: forget_of_queue
-- As in common/, with an explicit type for the comparison.
DELETE FROM pace
 WHERE queue_no = :queue_no
   AND (group_key = '') = (CAST(:of_queue AS integer) = 1);
