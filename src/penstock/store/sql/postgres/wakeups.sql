-- name: listen
-- From now on this connection hears of wake-ups.
LISTEN penstock_wakeup;

-- name: notify
-- Tell everybody who listens.
SELECT pg_notify('penstock_wakeup', :payload);
