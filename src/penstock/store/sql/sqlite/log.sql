-- name: numbers_page
-- The page that holds the last message number: every transaction that sends writes it.
SELECT rootpage
  FROM sqlite_master
 WHERE type = 'table'
   AND name = 'sequence';
