-- name: tables
-- Every table of the store, along the search path.
SELECT c.relname
  FROM pg_class AS c
 WHERE c.relkind = 'r'
   AND pg_table_is_visible(c.oid)
   AND c.relnamespace NOT IN (SELECT n.oid
                                FROM pg_namespace AS n
                               WHERE n.nspname IN ('pg_catalog', 'information_schema'))
 ORDER BY c.relname;

-- name: columns
-- The columns of a table, in their order.
SELECT attname
  FROM pg_attribute
 WHERE attrelid = to_regclass(:table_name)
   AND attnum > 0
   AND NOT attisdropped
 ORDER BY attnum;

-- name: lock
-- Keep nodes from using the store while it is filled.
LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;

-- name: any_row
-- Whether the table has a row.
SELECT 1
  FROM {table}
 LIMIT 1;

-- name: copy
-- Copy rows in PostgreSQL's text format.
COPY {table} ({names}) FROM STDIN;

-- name: count
-- The number of rows that have arrived.
SELECT count(*)
  FROM {table};

-- name: numbered
-- The identity columns, and their sequences.
SELECT attname, pg_get_serial_sequence(CAST(:table_name AS text), attname)
  FROM pg_attribute
 WHERE attrelid = to_regclass(:table_name)
   AND attidentity <> '';

-- name: continue_after
-- Number new rows after the copied ones.
SELECT setval(:sequence_name, coalesce(max({column}), 1), count(*) > 0)
  FROM {table};

-- name: take
-- Number new messages after all that were ever sent.
SELECT setval('message_no', greatest(CAST(:taken_no AS bigint), 1), CAST(:taken_no AS bigint) > 0);

-- name: unbalanced
-- Queues whose counters do not agree with the table, or do not add up.
SELECT coalesce(c.queue_no, m.queue_no)
  FROM (SELECT queue_no, sum(waiting) AS waiting, sum(ready) AS ready, sum(leased) AS leased,
               sum(dead) AS dead, sum(sent_total) AS sent,
               sum(done_total + dead_total + cancelled_total) AS ended
          FROM counter
         GROUP BY queue_no) AS c
  FULL JOIN (SELECT queue_no, count(*) FILTER (WHERE state = 'waiting') AS waiting,
                    count(*) FILTER (WHERE state = 'ready') AS ready,
                    count(*) FILTER (WHERE state = 'leased') AS leased,
                    count(*) FILTER (WHERE state = 'dead') AS dead
               FROM message
              GROUP BY queue_no) AS m
    ON m.queue_no = c.queue_no
 WHERE coalesce(c.waiting, 0) <> coalesce(m.waiting, 0)
    OR coalesce(c.ready, 0) <> coalesce(m.ready, 0)
    OR coalesce(c.leased, 0) <> coalesce(m.leased, 0)
    OR coalesce(c.dead, 0) <> coalesce(m.dead, 0)
    OR coalesce(c.sent, 0) <> coalesce(c.waiting + c.ready + c.leased + c.ended, 0)
 ORDER BY 1;
