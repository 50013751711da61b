-- name: tables
-- Every table of the store; names of SQLite's own tables begin with "sqlite".
SELECT name
  FROM sqlite_master
 WHERE type = 'table'
   AND name NOT LIKE 'sqlite%'
 ORDER BY name;

-- name: columns
-- The columns of a table, in their order.
SELECT name
  FROM pragma_table_info(:table_name)
 ORDER BY cid;

-- name: count
-- The number of rows to copy.
SELECT count(*)
  FROM {table};

-- name: all
-- All rows, read little by little.
SELECT {names}
  FROM {table};

-- name: taken
-- The latest number assigned to a message.
SELECT taken_no
  FROM sequence
 WHERE name = 'message';
