-- name: transactions
-- Everything that holds back vacuum in this database, oldest snapshot first. Sessions of other
-- users are visible only to members of pg_read_all_stats.
SELECT kind, transactions, pid, name, application, user_name,
       CAST(extract(epoch FROM since) * 1000 AS bigint), state,
       CAST(extract(epoch FROM query_since) * 1000 AS bigint)
  FROM (
         SELECT CASE backend_type WHEN 'walsender' THEN 'standby' ELSE 'session' END AS kind,
                greatest(age(backend_xmin), age(backend_xid)) AS transactions,
                pid,
                NULL AS name,
                application_name AS application,
                CAST(usename AS text) AS user_name,
                xact_start AS since,
                state,
                query_start AS query_since
           FROM pg_stat_activity
          WHERE (datname = current_database() OR backend_type = 'walsender')
            AND backend_type <> 'autovacuum worker'
            AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
            AND pid <> pg_backend_pid()
          UNION ALL
         SELECT 'prepared', age(transaction), NULL, gid, NULL, CAST(owner AS text), prepared,
                NULL, NULL
           FROM pg_prepared_xacts
          WHERE database = current_database()
          UNION ALL
         SELECT 'slot', age(xmin), NULL, CAST(slot_name AS text), NULL, NULL, NULL,
                NULL, NULL
           FROM pg_replication_slots
          WHERE xmin IS NOT NULL
       ) AS holder
 ORDER BY transactions DESC, since, pid
 LIMIT :limit;

-- name: tables
-- Our tables, without those of single days, which vacuum has little to do with. All users may read
-- these numbers.
SELECT CAST(relname AS text), n_live_tup, n_dead_tup,
       CAST(extract(epoch FROM greatest(last_vacuum, last_autovacuum)) * 1000 AS bigint)
  FROM pg_stat_user_tables
 WHERE relname !~ '_[0-9]{5,}$'
   AND relid IN (SELECT oid
                   FROM pg_class
                  WHERE relnamespace = (SELECT relnamespace
                                          FROM pg_class
                                         WHERE oid = to_regclass('message')))
 ORDER BY n_dead_tup DESC, relname
 LIMIT :limit;

-- name: notifications
-- How full the queue of notifications is; a session that listens and does not read fills it, and
-- then every NOTIFY fails.
SELECT CAST(pg_notification_queue_usage() AS text);
