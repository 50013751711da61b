-- Why: on PostgreSQL counter rows get larger numbers.  Here nothing changes.

DO 0;
