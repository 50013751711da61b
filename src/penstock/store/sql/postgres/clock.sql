-- name: read
-- The time that all nodes go by.
SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint);
