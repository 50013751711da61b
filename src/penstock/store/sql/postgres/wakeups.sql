-- name: listen
-- Receive wake-ups on this connection from now on.
LISTEN penstock_wakeup;

-- name: notify
-- Wake every connection that listens.
SELECT pg_notify('penstock_wakeup', :payload);
