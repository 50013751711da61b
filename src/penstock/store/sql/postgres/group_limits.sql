-- name: admitted
-- As in common/, with PostgreSQL's JSON; group by group, with the index of admitted messages.
SELECT CAST(g.pair ->> 0 AS bigint), g.pair ->> 1, m.state, m.number
  FROM json_array_elements(CAST(:groups AS json)) AS g (pair)
 CROSS JOIN LATERAL (SELECT o.state, count(*) AS number
                       FROM message AS o
                      WHERE o.queue_no = CAST(g.pair ->> 0 AS bigint)
                        AND o.group_key = g.pair ->> 1
                        AND o.gate = 1
                      GROUP BY o.state) AS m;
