-- name: listen
-- Receive wake-ups on this connection from now on.
LISTEN penstock_wakeup;

-- name: notify
-- Wake every connection that listens.
SELECT pg_notify('penstock_wakeup', :payload);

-- name: notify_alone
-- The same in a transaction of its own, which need not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('penstock_wakeup', :payload);
