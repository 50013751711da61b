-- name: watch_host
-- For the whole connection: make the server detect within seconds that our host is gone. Servers
-- before 14 do not know the last of these settings; before 16 only those on Linux accept it.
SELECT set_config(w.key, w.value, false)
  FROM json_each_text(CAST(:wanted AS json)) w
 WHERE current_setting(w.key, true) IS NOT NULL
   AND (w.key <> 'client_connection_check_interval' OR version() LIKE '%linux%');

-- name: own
-- Our own session: its process id, and its start in microseconds.
SELECT pid, CAST(extract(epoch FROM backend_start) * 1000000 AS bigint)
  FROM pg_stat_activity
 WHERE pid = pg_backend_pid();

-- name: end
-- End these sessions, if they still exist.
SELECT pg_terminate_backend(a.pid)
  FROM json_array_elements(CAST(:sessions AS json)) s
  JOIN pg_stat_activity a
    ON a.pid = CAST(s ->> 0 AS integer)
   AND CAST(extract(epoch FROM a.backend_start) * 1000000 AS bigint) = CAST(s ->> 1 AS bigint);

-- name: waiting_for_client
-- Sessions like ours that wait for their client to send or receive, inside a statement or between
-- two. COPY is left out, because it always waits for its data in pieces.
SELECT pid,
       CAST(extract(epoch FROM backend_start) * 1000000 AS bigint),
       CAST(extract(epoch FROM state_change) * 1000000 AS bigint)
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND usename = session_user
   AND application_name = current_setting('application_name')
   AND pid <> pg_backend_pid()
   AND (wait_event = 'ClientWrite' OR (wait_event = 'ClientRead' AND state = 'active'))
   AND query NOT LIKE 'COPY %';
