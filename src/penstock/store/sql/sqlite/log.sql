-- name: numbers_page
-- The page on which messages are numbered: every transaction that sends writes it.
SELECT rootpage
  FROM sqlite_master
 WHERE type = 'table'
   AND name = 'sequence';
