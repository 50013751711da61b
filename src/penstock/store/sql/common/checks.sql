-- name: in_states
-- The real numbers of messages: reads them all, so only for penstock doctor.
SELECT queue_no, state, count(*)
  FROM message
 GROUP BY queue_no, state;

-- name: table_sizes
-- The size of each table, with its indexes.
SELECT m.tbl_name, sum(d.pgsize)
  FROM dbstat AS d
  JOIN sqlite_master AS m
    ON m.name = d.name
 WHERE d.aggregate = 1
 GROUP BY m.tbl_name;

-- name: free_space
-- Bytes of the file that nothing uses, such as those of days that were dropped.
SELECT f.freelist_count * p.page_size
  FROM pragma_freelist_count AS f, pragma_page_size AS p;

-- name: read_everything
-- Prepare for reading whole tables.

-- name: space_of_messages
-- Messages and the bytes of their bodies, by queue; reads all messages.
SELECT queue_no, count(*), sum(size)
  FROM message
 GROUP BY queue_no;

-- name: space_of_history
-- The same for a day of history.
SELECT queue_no, count(*), sum(size)
  FROM history_{day}
 GROUP BY queue_no;
