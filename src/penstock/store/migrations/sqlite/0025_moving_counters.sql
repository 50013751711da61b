-- Why: on PostgreSQL counter rows get larger numbers.  Here nothing changes: a queue has one row.

SELECT 1;
