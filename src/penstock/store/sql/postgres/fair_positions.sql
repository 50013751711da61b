-- name: shares
-- As in common/, with PostgreSQL's JSON.
SELECT s.queue_no, s.priority, s.group_key, s.finish_no
  FROM json_array_elements(CAST(:shares AS json)) AS g (part)
 CROSS JOIN LATERAL (SELECT *
                       FROM fair_share
                      WHERE queue_no = CAST(g.part ->> 0 AS bigint)
                        AND priority = CAST(g.part ->> 1 AS integer)
                        AND group_key = g.part ->> 2
                      LIMIT 1) AS s;

-- name: is_drained
-- As in common/, written so that PostgreSQL does not read the messages of all queues.
SELECT 1
 WHERE EXISTS (SELECT 1 FROM fair_share WHERE queue_no = :queue_no LIMIT 1 OFFSET 0)
   AND NOT EXISTS (SELECT 1
                     FROM message
                    WHERE queue_no = :queue_no
                      AND state = 'ready'
                    LIMIT 1 OFFSET 0);

-- name: forget
-- As in common/, but skips rows that are locked, so that it never waits.
DELETE FROM fair_share
 WHERE ctid = ANY (ARRAY(
         SELECT s.ctid
           FROM fair_line AS n
           JOIN fair_share AS s
             ON s.queue_no = n.queue_no
            AND s.priority = n.priority
            AND s.finish_no <= n.passed_no
          LIMIT :limit
            FOR UPDATE OF s SKIP LOCKED));

-- name: assign_all
-- As in common/, with PostgreSQL's JSON.
UPDATE message
   SET turn = 1 + (l.place - 1) * (CAST(:step AS bigint) / l.weight)
  FROM (SELECT m.message_no,
               row_number() OVER (PARTITION BY m.priority, coalesce(m.group_key, '')
                                      ORDER BY m.order_no) AS place,
               coalesce(CAST(CAST(:weights AS json) ->> coalesce(m.group_key, '') AS bigint), 1)
                 AS weight
          FROM message AS m
         WHERE m.queue_no = :queue_no
           AND (m.state IN ('ready', 'leased')
                OR (m.state = 'waiting'
                    AND (m.first_leased_at IS NOT NULL
                         OR m.gate = 1
                         OR CAST(:is_ordered AS integer) = 1)))) AS l
 WHERE message.message_no = l.message_no;

-- name: note_shares
-- As in common/, with PostgreSQL's JSON.
INSERT INTO fair_share (queue_no, priority, group_key, finish_no)
SELECT m.queue_no, m.priority, coalesce(m.group_key, ''),
       max(m.turn) + CAST(:step AS bigint)
         / coalesce(CAST(CAST(:weights AS json) ->> coalesce(m.group_key, '') AS bigint), 1)
  FROM message AS m
 WHERE m.queue_no = :queue_no
   AND m.turn > 0
   AND m.state IN ('waiting', 'ready', 'leased')
 GROUP BY m.queue_no, m.priority, coalesce(m.group_key, '');
