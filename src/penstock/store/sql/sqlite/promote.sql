-- name: tables
-- Every table of the store; SQLite's own begin with its name.
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
-- How many rows there are to copy.
SELECT count(*)
  FROM {table};

-- name: all
-- Everything, to be read little by little.
SELECT {names}
  FROM {table};

-- name: taken
-- The latest number given to a message.
SELECT taken_no
  FROM sequence
 WHERE name = 'message';
